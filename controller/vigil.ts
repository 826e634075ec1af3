import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Entry } from "./entry.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import { type BackendName, BACKENDS } from "./model/ids.ts";
import { isBeforeClaim } from "./model/state.ts";
import { fromWireResult, isGone } from "./settle.ts";
import type { WaitingRows } from "./waiting_rows.ts";

/**
 * Keeps tasks alive at Gitea while they wait, and hears of their cancellation: Gitea tells it only
 * in the answer to `UpdateTask`, and takes a task that is silent for its zombie time-out for dead.
 * Executors in the making and the next few waiting tasks are asked so often that a cancel is heard
 * within 10 s, the others within a third of the zombie time-out, all of them together at most `maxRps`
 * times a second. When that is not enough, those come first that are late by the largest part of
 * their interval.
 *
 * With the heartbeat goes the row that tells the job's author why it waits.
 */
export interface Vigil {
  /** Runs until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** No more heartbeats for this one; resolves when none is under way. */
  stop(entry: Entry): Promise<void>;
  /** Asks now, unless Gitea has spoken of the task within moments. Never rejects. */
  confirm(entry: Entry): Promise<void>;
}

/** Makes a {@link Vigil}. */
export function createVigil(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly gitea: Gitea;
  readonly ledger: Ledger;
  readonly rows: WaitingRows;
  readonly zombieTimeoutMs: number;
  readonly maxRps: number;
  /** How many waiting tasks of a backend are asked as often as those in the making. */
  readonly near: (backend: BackendName) => number;
  /** Ends requests. */
  readonly signal: AbortSignal;
}): Vigil {
  const { clock, ledger } = deps;
  /** When Gitea was last asked, on the monotonic clock. */
  const asked = new WeakMap<Entry, number>();
  const underWay = new Map<Entry, Promise<void>>();

  const ask = async (entry: Entry, purpose: Purpose, signal: AbortSignal) => {
    const id = BigInt(entry.info.taskId);
    const cancelled = (detail: string) =>
      ledger.dispatch(entry.info.id, { kind: "cancelled", detail });
    try {
      const state = create(TaskStateSchema, { id });
      const answer = await deps.gitea.updateTask({ state }, { signal });
      const result = fromWireResult(answer.state?.result ?? 0);
      if (result === "cancelled") cancelled("cancelled at Gitea");
      else if (result !== null) cancelled(`Gitea ended the job: ${result}`);
      else if (purpose === "heartbeat") await deps.rows.write(entry, signal);
    } catch (error) {
      if (error instanceof GiteaError && isGone(error)) {
        cancelled(`Gitea does not know the job any more: ${error.message}`);
      } else if (!signal.aborted) {
        deps.logger.warn("waiting heartbeat failed", { assignment: entry.info.id, error });
      }
    }
  };

  const beat = (entry: Entry, purpose: Purpose, signal: AbortSignal): Promise<void> => {
    asked.set(entry, clock.monotonic());
    const asking = ask(entry, purpose, signal).finally(() => underWay.delete(entry));
    underWay.set(entry, asking);
    return asking;
  };

  // Gitea has just handed it out: the first heartbeat is due one interval later.
  const lastWord = (entry: Entry) =>
    asked.get(entry) ?? clock.monotonic() - ledger.age(entry).totalMs;

  /** Who is due, those that are latest for their interval first. */
  const due = (): Entry[] => {
    const now = clock.monotonic();
    const found: { readonly entry: Entry; readonly late: number }[] = [];
    const add = (entry: Entry, intervalMs: number) => {
      // Its runner may be at work: a row of ours would push its rows away.
      if (entry.unproven) return;
      const late = (now - lastWord(entry)) / intervalMs;
      if (late >= 1 && entry.claiming === null && !underWay.has(entry)) found.push({ entry, late });
    };
    const farMs = deps.zombieTimeoutMs / 3;
    for (const backend of BACKENDS) {
      for (const kind of ["admitted", "starting", "ready"] as const) {
        for (const entry of ledger.inState(backend, kind)) add(entry, NEAR_MS);
      }
      const stored = ledger.inState(backend, "stored");
      const last = nth(stored, deps.near(backend));
      for (const entry of stored) add(entry, placeOf(entry) <= last ? NEAR_MS : farMs);
      for (const entry of ledger.inState(backend, "parked")) add(entry, farMs);
    }
    return found.sort((a, b) => b.late - a.late).map(({ entry }) => entry);
  };

  return {
    async run(stop) {
      const signal = AbortSignal.any([deps.signal, stop]);
      const pause = 1_000 / deps.maxRps;
      while (!stop.aborted) {
        const until = clock.monotonic() + ROUND_MS;
        for (const entry of due()) {
          if (underWay.size >= MAX_UNDER_WAY) await Promise.race(underWay.values());
          // After the wait: it may have been claimed meanwhile, or asked about by `confirm()`.
          if (stop.aborted || clock.monotonic() >= until) break;
          if (!isBeforeClaim(entry.state) || entry.claiming !== null) continue;
          if (underWay.has(entry)) continue;
          beat(entry, "heartbeat", signal); // Never rejects; awaited through `underWay`.
          await clock.sleep(pause, stop).catch(() => {});
        }
        const left = until - clock.monotonic();
        if (left > 0) await clock.sleep(left, stop).catch(() => {});
      }
      await Promise.all(underWay.values());
    },
    async stop(entry) {
      await underWay.get(entry);
    },
    async confirm(entry) {
      await underWay.get(entry);
      if (clock.monotonic() - lastWord(entry) < FRESH_MS) return;
      await beat(entry, "confirmation", deps.signal);
    },
  };
}

/** A confirmation is waited for, so it asks only what it must know. */
type Purpose = "heartbeat" | "confirmation";

/** A cancel is heard within 10 s: with a round of looking and the call itself. */
const NEAR_MS = 8_500;
/** How long one look at who is due serves. */
const ROUND_MS = 1_000;
/** Gitea's word is that fresh. */
const FRESH_MS = 2_000;
const MAX_UNDER_WAY = 16;

function placeOf(entry: Entry): number {
  return entry.sequence ?? Infinity;
}

/** Place of the nth of those that wait; nobody is within 0. */
function nth(stored: ReadonlySet<Entry>, count: number): number {
  if (count <= 0) return -1;
  const nearest: number[] = [];
  for (const entry of stored) {
    const place = placeOf(entry);
    if (nearest.length === count && place >= (nearest.at(-1) ?? Infinity)) continue;
    const at = nearest.findIndex((other) => other > place);
    nearest.splice(at < 0 ? nearest.length : at, 0, place);
    if (nearest.length > count) nearest.pop();
  }
  return nearest.at(-1) ?? -1;
}
