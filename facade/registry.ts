import { sameBytes } from "../lib/bytes.ts";
import type { Clock } from "../lib/clock.ts";
import { toBinary } from "../proto/runtime.ts";
import { type Task, TaskSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { AssignmentInfo } from "../controller/model/assignment_info.ts";
import type { AssignmentId } from "../controller/model/ids.ts";
import type { Offers } from "../controller/offers.ts";
import type { Relay } from "./relay.ts";
import { createWatchers } from "./watchers.ts";

/** Where an assignment stands at the facade. */
export type OfferState =
  /** Laid out; nobody has it. */
  | { readonly kind: "offered"; readonly task: Task }
  /** Handed to that gate; `task` until its first report, for a gate that lost the answer. */
  | {
    readonly kind: "claimed";
    readonly gate: string;
    /** Its first row is row `logOffset` at Gitea. */
    readonly logOffset: number;
    readonly task: Task | null;
    readonly relay: Relay;
  }
  /** Taken back by the controller; the relay still takes what comes late. */
  | { readonly kind: "removed"; readonly relay: Relay | null };

/** One assignment as executors meet it. */
export interface Offer {
  readonly info: AssignmentInfo;
  readonly state: OfferState;
}

/**
 * What a caller's id and SPIFFE ID lead to. `foreign`: the assignment is another identity's;
 * `unproven`: it is the caller's, and the controller has to learn from it what became of the claim.
 */
export type Resolved =
  | { readonly kind: "found"; readonly offer: Offer }
  | { readonly kind: "unknown" }
  | { readonly kind: "unproven" }
  | { readonly kind: "foreign" };

/** What the controller lays out, and what executors find. */
export interface Registry extends Offers {
  /** The caller's assignment. */
  resolve(id: AssignmentId, spiffeId: string): Resolved;
  /** Waits until the assignment is known, or the signal aborts: then what is known by now. Never rejects. */
  waitOffer(id: AssignmentId, spiffeId: string, signal: AbortSignal): Promise<Resolved>;
  /** Resolves with the gate once the assignment is claimed; rejects with the signal's reason. */
  waitClaimed(id: AssignmentId, signal: AbortSignal): Promise<string>;
  /** The claim was granted: `gate` is being handed the task, its first row is row `logOffset` at Gitea. */
  claimed(id: AssignmentId, gate: string, logOffset: number): void;
  /** The runner has reported: the task is not handed out again. */
  delivered(id: AssignmentId): void;
  /** From now on an assignment that is not known here does not exist: recovery is complete. */
  complete(): void;
  /** False until {@link Registry.complete}. */
  readonly isComplete: boolean;
  /** Drops what was taken back longer than {@link LATE_ROWS_MS} ago. */
  sweep(): void;
  /** Counts for the page of health. */
  count(): { readonly offered: number; readonly claimed: number };
}

/** What {@link createRegistry} needs. */
export interface RegistryDeps {
  readonly clock: Clock;
  /** Makes the relay of a claimed assignment. */
  relayFor(info: AssignmentInfo, logOffset: number): Relay;
  /** Called once the late rows' time is over for a relay that was taken back. */
  ended(info: AssignmentInfo, relay: Relay): void;
}

/** Late log rows are forwarded this long after the end. */
export const LATE_ROWS_MS = 60_000;

interface Entry {
  readonly info: AssignmentInfo;
  state: OfferState;
  /** Monotonic time of the removal. */
  removedAt: number | null;
}

/** Makes an empty registry. It holds payloads in memory only, each until its runner surely has it. */
export function createRegistry(deps: RegistryDeps): Registry {
  const { clock } = deps;
  const entries = new Map<AssignmentId, Entry>();
  /** Executors whose records are lost. */
  const unproven = new Map<AssignmentId, AssignmentInfo>();
  const watchers = createWatchers<AssignmentId>();
  let isComplete = false;

  const sweep = () => {
    for (const [id, entry] of entries) {
      if (entry.removedAt === null) continue;
      if (clock.monotonic() - entry.removedAt < LATE_ROWS_MS) return;
      entries.delete(id);
      if (entry.state.kind === "removed" && entry.state.relay !== null) {
        deps.ended(entry.info, entry.state.relay);
      }
    }
  };
  const put = (info: AssignmentInfo, state: OfferState) => {
    // Removed ones stand in order of removal, so that the sweep may stop early.
    unproven.delete(info.id);
    entries.delete(info.id);
    entries.set(info.id, { info, state, removedAt: null });
    watchers.changed(info.id);
  };
  const resolve = (id: AssignmentId, spiffeId: string): Resolved => {
    const entry = entries.get(id);
    const info = entry?.info ?? unproven.get(id);
    if (info === undefined) return { kind: "unknown" };
    if (info.identity.spiffeId !== spiffeId) return { kind: "foreign" };
    if (entry === undefined) return { kind: "unproven" };
    return { kind: "found", offer: { info: entry.info, state: entry.state } };
  };

  return {
    resolve,
    sweep,
    offer(info, task) {
      const known = entries.get(info.id);
      if (known === undefined || known.state.kind === "removed") {
        put(info, { kind: "offered", task });
        return "offered";
      }
      const held = known.state.task;
      const same = known.info.taskId === info.taskId && String(task.id) === info.taskId &&
        known.info.identity.spiffeId === info.identity.spiffeId &&
        (held === null || sameTask(held, task));
      return same ? "offered" : "conflict";
    },
    expectProof(info) {
      if (!entries.has(info.id)) unproven.set(info.id, info);
    },
    recoverClaimed(info, { claim, logOffset, task }) {
      const known = entries.get(info.id);
      if (known?.state.kind === "claimed") return;
      const relay = deps.relayFor(info, logOffset);
      relay.restored();
      put(info, { kind: "claimed", gate: claim.gate, logOffset, task, relay });
    },
    remove(id) {
      unproven.delete(id);
      const entry = entries.get(id);
      if (entry === undefined || entry.state.kind === "removed") return;
      const relay = entry.state.kind === "claimed" ? entry.state.relay : null;
      put(entry.info, { kind: "removed", relay });
      const removed = entries.get(id);
      if (removed !== undefined) removed.removedAt = clock.monotonic();
    },
    cancel(id, why) {
      const state = entries.get(id)?.state;
      if (state?.kind === "claimed") state.relay.cancel(why);
    },
    async conclude(id, signal) {
      const state = entries.get(id)?.state;
      if (state === undefined || state.kind === "offered") return null;
      return await state.relay?.conclude(signal) ?? null;
    },
    async waitOffer(id, spiffeId, signal) {
      while (true) {
        const found = resolve(id, spiffeId);
        const isThere = found.kind !== "unknown" && found.kind !== "unproven";
        if (isThere || signal.aborted) return found;
        await watchers.next(id, signal);
      }
    },
    async waitClaimed(id, signal) {
      while (true) {
        const state = entries.get(id)?.state;
        if (state?.kind === "claimed") return state.gate;
        signal.throwIfAborted();
        await watchers.next(id, signal);
      }
    },
    claimed(id, gate, logOffset) {
      const entry = entries.get(id);
      if (entry?.state.kind !== "offered") return;
      const relay = deps.relayFor(entry.info, logOffset);
      entry.state = { kind: "claimed", gate, logOffset, task: entry.state.task, relay };
      watchers.changed(id);
    },
    delivered(id) {
      const entry = entries.get(id);
      if (entry?.state.kind !== "claimed" || entry.state.task === null) return;
      entry.state = { ...entry.state, task: null };
    },
    complete() {
      isComplete = true;
    },
    get isComplete() {
      return isComplete;
    },
    count() {
      const kinds = [...entries.values()].map((entry) => entry.state.kind);
      return {
        offered: kinds.filter((kind) => kind === "offered").length,
        claimed: kinds.filter((kind) => kind === "claimed").length,
      };
    },
  };
}

function sameTask(a: Task, b: Task): boolean {
  return a === b || sameBytes(toBinary(TaskSchema, a), toBinary(TaskSchema, b));
}
