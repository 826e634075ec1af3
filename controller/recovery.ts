import type { Clock } from "../lib/clock.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import { BackendError, type Executor } from "./backend.ts";
import type { Deed } from "./effects.ts";
import type { Entry, Recovered } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { type AssignmentId, assignmentIdOf, type BackendName, type TaskId } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";
import type { TaskRecord } from "./model/record.ts";
import type { Offers } from "./offers.ts";
import { type Proofs, UNPROVEN, type Unproven } from "./proofs.ts";
import type { Opened } from "./processor.ts";
import type { AssignmentQueue, PendingMessage } from "./queue.ts";
import type { Recorder } from "./recorder.ts";
import type { Versioned } from "./records.ts";
import { restoredState } from "./restored_state.ts";
import type { Identified, Stranger, Strangers } from "./strangers.ts";
import type { Ownership, Worker } from "./worker.ts";

/** What {@link recoverBackend} needs. */
export interface RecoveryDeps {
  readonly worker: Worker;
  readonly records: ReadonlyMap<TaskId, Versioned<TaskRecord>>;
  readonly queue: AssignmentQueue;
  readonly ledger: Ledger;
  readonly offers: Offers;
  readonly ownership: Ownership;
  readonly strangers: Strangers;
  readonly proofs: Pick<Proofs, "expect">;
  readonly recorder: Recorder;
  readonly clock: Clock;
  open(data: Uint8Array): Promise<Opened>;
  identify(executor: Executor): Identified;
  /** Why a stored one waits now. */
  waiting(): { readonly code: ReasonCode; readonly detail: string };
  run(entry: Entry, effect: Deed): void;
}

/** One assignment as the durable stores tell of it. */
interface Found {
  readonly info: AssignmentInfo;
  readonly record: Versioned<TaskRecord> | null;
  readonly executor: Executor | null;
  readonly proof: Recovered["proof"] | null;
  readonly message: PendingMessage | null;
  /** The message opened, where that matters. */
  readonly opened: Opened | null;
  /** An executor is there, and no record. */
  readonly unproven?: true;
}

/** What is there. */
interface Gathered {
  readonly found: Found[];
  readonly strangers: readonly Stranger[];
  readonly unproven: readonly Omit<Unproven, "adopt">[];
  /** Nobody can ever begin anything in them. */
  readonly leftovers: readonly Executor[];
}

/**
 * Rebuilds one backend's part of the ledger from what is durable: executors, records, stored
 * messages.
 *
 * Everything is read first, then the ledger is filled in one go: a reading that fails leaves it as it
 * was. An executor that cannot be verified is shown and stops nobody. Throws while the backend cannot
 * be listed; the caller keeps only this backend's consumer closed and tries again.
 */
export async function recoverBackend(
  deps: RecoveryDeps,
  signal: AbortSignal,
): Promise<{ readonly executors: number; readonly stored: number }> {
  const { backend } = deps.worker;
  const executors = await backend.list({ signal });
  const messages = await listMessages(deps.queue, backend.name, signal);
  const { found, strangers, unproven, leftovers } = await gather(deps, executors, messages);
  // Oldest first: those without a message were admitted before all that still have one.
  found.sort((a, b) => placeOf(a) - placeOf(b) || ageOf(a) - ageOf(b));
  for (const stranger of strangers) deps.strangers.show(stranger);
  for (const each of found) restore(deps, each);
  for (const each of unproven) {
    const { info, message, opened } = each;
    deps.proofs.expect({
      ...each,
      adopt: (record, executor) =>
        restore(deps, {
          info: infoOf(info.id, info.taskId, record.value),
          record,
          executor,
          proof: "heartbeat",
          message,
          opened,
        }),
    });
  }
  for (const executor of leftovers) {
    try {
      await backend.delete(executor, { signal });
    } catch (error) {
      if (!(error instanceof BackendError)) throw error;
      deps.strangers.show({ executor, ownership: "unknown", why: LEFTOVER });
    }
  }
  const recovered = found.filter(({ executor }) => executor !== null).length;
  deps.recorder.recovered(backend.name, recovered);
  return { executors: recovered, stored: messages.size };
}

async function gather(
  deps: RecoveryDeps,
  executors: readonly Executor[],
  messages: ReadonlyMap<AssignmentId, PendingMessage>,
): Promise<Gathered> {
  const { name } = deps.worker.backend;
  const found = new Map<AssignmentId, Found>();
  const strangers: Stranger[] = [];
  const unproven: Omit<Unproven, "adopt">[] = [];
  const leftovers: Executor[] = [];

  for (const executor of executors) {
    const identified = deps.identify(executor);
    if (identified.kind !== "ours") {
      strangers.push({ executor, ownership: identified.kind, why: identified.why });
      continue;
    }
    const { id, taskId } = identified.info;
    const record = deps.records.get(taskId);
    const proof = record === undefined ? null : await prove(deps.ownership, executor, record.value);
    if (record === undefined && !messages.has(id) && isUnbegun(name, executor)) {
      leftovers.push(executor);
    } else if (record === undefined) {
      const why = executor.terminal ? "there is no record of it" : UNPROVEN;
      strangers.push({ executor, ownership: "unknown", why });
      const message = messages.get(id) ?? null;
      const opened = message === null ? null : await deps.open(message.data);
      const info = opened?.kind === "readable" ? opened.info : identified.info;
      const nothing = { record: null, executor: null, proof: null };
      if (message !== null) {
        found.set(id, { info, ...nothing, message, opened, unproven: true });
      }
      if (!executor.terminal) unproven.push({ info: identified.info, executor, message, opened });
    } else if (proof === null) {
      strangers.push({ executor, ownership: "foreign", why: "its record names another one" });
    } else {
      const message = messages.get(id) ?? null;
      const opened = message === null ? null : await deps.open(message.data);
      const info = infoOf(id, taskId, record.value);
      found.set(id, { info, record, executor, proof, message, opened });
    }
  }
  for (const [taskId, record] of deps.records) {
    const id = assignmentIdOf(taskId);
    if (record.value.backend !== name || found.has(id)) continue;
    const info = infoOf(id, taskId, record.value);
    const message = messages.get(id) ?? null;
    found.set(id, { info, record, executor: null, proof: null, message, opened: null });
  }
  for (const message of messages.values()) {
    if (found.has(message.id)) continue;
    const opened = await deps.open(message.data);
    if (opened.kind !== "readable") continue; // Its delivery will tell, and say why.
    const nothing = { record: null, executor: null, proof: null };
    found.set(message.id, { info: opened.info, message, opened, ...nothing });
  }
  return { found: [...found.values()], strangers, unproven, leftovers };
}

/**
 * A microVM without identity: it was made by a create whose answer was lost, for a job that has ended.
 * A Pod's identity may have been taken away, so that it says nothing.
 */
function isUnbegun(backend: BackendName, { identityBound }: Executor): boolean {
  return backend === "vm" && identityBound === false;
}

function restore(deps: RecoveryDeps, found: Found): void {
  const { ledger, offers, clock, run } = deps;
  const { info, record, executor, message, opened } = found;
  const known = ledger.get(info.id);
  // The scheduler has stored it while we were reading.
  if (known !== undefined && record === null) return;
  const state = restoredState({
    record: record?.value ?? null,
    executor,
    stored: message !== null,
    now: clock.now(),
  });
  const entry = ledger.add(info, state, record?.value.storedAt ?? message?.storedAt ?? clock.now());
  entry.record = record;
  entry.restored = record !== null;
  entry.executor = executor;
  // An earlier process may have asked for one just before it ended.
  entry.mayExist = record !== null && state.kind === "stored";
  entry.unproven = found.unproven ?? false;
  entry.sequence = message?.sequence ?? null;
  if (found.proof !== null) entry.recovered = { at: clock.now(), proof: found.proof };
  explain(deps, entry);

  const value = record?.value;
  const executorLives = executor !== null && executor.ended === null;
  const given = state.kind !== "settling" && (state.kind !== "terminal" || executorLives);
  if (value?.claimedBy != null && given) {
    const task: Task | null = state.kind === "claimed" && opened?.kind === "readable"
      ? opened.task
      : null;
    const { claimedBy: claim, logOffset, steps } = value;
    offers.recoverClaimed(info, { claim, logOffset, steps, task });
  }
  switch (state.kind) {
    case "stored":
    case "parked":
    case "starting":
      if (message === null) {
        return giveUp(entry, "payload_lost", "the stored task is gone from the queue");
      }
      if (state.kind !== "starting" || opened === null) return;
      if (opened.kind === "invalid") return giveUp(entry, "invalid", opened.detail);
      if (opened.kind === "unreadable") {
        entry.reason = { code: "unreadable", detail: opened.detail, since: clock.now() };
        return;
      }
      offers.offer(info, opened.task);
      return run(entry, { kind: "accept", afterMs: 0 });
    case "settling":
      // Given up by an operator, and not yet seen to be gone.
      return run(entry, { kind: "settle", result: state.result, ...state.reason });
    case "terminal":
      if (state.message === "in_hand") run(entry, { kind: "ack" });
      // Given up: it is deleted whatever it does.
      if (state.presence === "leaving") run(entry, { kind: "delete_executor" });
      if (state.marker === "pending") run(entry, { kind: "mark" });
      else if (state.presence === "ended") run(entry, { kind: "delete_executor" });
      if (state.presence === "gone" && state.message === "gone") run(entry, { kind: "finish" });
      return;
    default:
      return; // A claimed one goes on by what its executor reports, or by its loss.
  }

  function giveUp(entry: Entry, code: ReasonCode, detail: string): void {
    ledger.dispatch(entry.info.id, { kind: "gave_up", code, detail });
  }
}

/** Why a restored one waits. */
function explain(deps: RecoveryDeps, entry: Entry): void {
  const since = deps.clock.now();
  switch (entry.state.kind) {
    case "stored":
      if (entry.unproven) {
        entry.reason = {
          code: "awaiting_claim",
          detail: `its executor is there; ${UNPROVEN}`,
          since,
        };
        return;
      }
      entry.reason = { ...deps.waiting(), since };
      return;
    case "parked": {
      const failures = entry.record?.value.failures ?? 0;
      entry.reason = { code: "parked", detail: `${failures} executors failed`, since };
      entry.nextTryAt = entry.state.until;
      return;
    }
    case "starting":
      entry.reason = { code: "executor_starting", detail: "its executor was recovered", since };
      return;
    default:
      return;
  }
}

async function prove(
  ownership: Ownership,
  executor: Executor,
  record: TaskRecord,
): Promise<"record" | "signature" | null> {
  if (record.uid !== null) return record.uid === executor.uid ? "record" : null;
  return await ownership.verify(executor.name, executor.metadata, record.nonce)
    ? "signature"
    : null;
}

function placeOf({ message }: Found): number {
  return message?.sequence ?? 0;
}

function ageOf({ record, message }: Found): number {
  return record?.value.storedAt ?? message?.storedAt ?? 0;
}

function infoOf(id: AssignmentId, taskId: TaskId, record: TaskRecord): AssignmentInfo {
  return {
    id,
    taskId,
    backend: record.backend,
    identity: { spiffeId: record.spiffeId, fork: record.fork },
    repository: record.repository,
    job: record.job,
    ...record.ref === undefined ? {} : { ref: record.ref },
    runId: record.runId,
    giteaUrl: record.giteaUrl,
    serverUrl: record.serverUrl,
  };
}

/** The first message of each assignment; a second one is judged when it is delivered. */
async function listMessages(
  queue: AssignmentQueue,
  backend: BackendName,
  signal: AbortSignal,
): Promise<Map<AssignmentId, PendingMessage>> {
  const messages = new Map<AssignmentId, PendingMessage>();
  let fromSequence = 1;
  while (true) {
    const page = await queue.list(backend, { fromSequence, limit: PAGE }, { signal });
    for (const message of page) {
      if (!messages.has(message.id)) messages.set(message.id, message);
    }
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) return messages;
    fromSequence = last.sequence + 1;
  }
}

const LEFTOVER = "its job has ended, it never got an identity, and it could not be deleted";
const PAGE = 500;
