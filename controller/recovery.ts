import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Executor } from "./backend.ts";
import type { Deed } from "./effects.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { type AssignmentId, assignmentIdOf, type BackendName, type TaskId } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import type { Presence, State } from "./model/state.ts";
import type { Offers } from "./offers.ts";
import type { Opened } from "./processor.ts";
import type { AssignmentQueue, PendingMessage } from "./queue.ts";
import type { Recorder } from "./recorder.ts";
import type { Versioned } from "./records.ts";
import type { Identified, Strangers } from "./strangers.ts";
import type { Ownership, Worker } from "./worker.ts";

/**
 * Rebuilds one backend's part of the ledger from what is durable: executors, records, stored
 * messages. An executor that cannot be verified is shown and stops nobody. Throws while the backend
 * cannot be listed; the caller keeps only this backend's consumer closed and tries again.
 */
export async function recoverBackend(deps: {
  readonly worker: Worker;
  readonly records: ReadonlyMap<TaskId, Versioned<TaskRecord>>;
  readonly queue: AssignmentQueue;
  readonly ledger: Ledger;
  readonly offers: Offers;
  readonly ownership: Ownership;
  readonly strangers: Strangers;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly logger: Logger;
  open(data: Uint8Array): Promise<Opened>;
  identify(executor: Executor): Identified;
  run(entry: Entry, effect: Deed): void;
}, signal: AbortSignal): Promise<{ readonly executors: number; readonly stored: number }> {
  const { worker, ledger, offers, clock } = deps;
  const name = worker.backend.name;
  const executors = await worker.backend.list({ signal });
  const messages = await listMessages(deps.queue, name, signal);
  let recovered = 0;

  for (const executor of executors) {
    const identified = deps.identify(executor);
    const record = identified.kind === "ours"
      ? deps.records.get(identified.info.taskId)
      : undefined;
    const proof = record === undefined ? null : await prove(deps.ownership, executor, record.value);
    if (identified.kind !== "ours" || record === undefined || proof === null) {
      await deps.strangers.look({ name: executor.name, executor }, signal);
      continue;
    }
    const info = infoOf(identified.info.id, identified.info.taskId, record.value);
    const stored = messages.get(info.id);
    const entry = restore(info, record, stateWith(executor, record.value, stored !== undefined));
    entry.executor = executor;
    entry.recovered = { at: clock.now(), proof };
    recovered++;
    resume(entry, stored);
  }

  for (const [taskId, record] of deps.records) {
    const id = assignmentIdOf(taskId);
    if (record.value.backend !== name || ledger.get(id) !== undefined) continue;
    const stored = messages.get(id);
    const entry = restore(
      infoOf(id, taskId, record.value),
      record,
      stateWithout(record.value, stored !== undefined),
    );
    resume(entry, stored);
  }

  for (const message of messages.values()) {
    if (ledger.get(message.id) !== undefined) continue;
    const opened = await deps.open(message.data);
    if (opened.kind !== "readable") continue; // Its delivery will tell, and say why.
    const entry = ledger.add(opened.info, { kind: "stored" }, message.storedAt);
    entry.sequence = message.sequence;
  }
  deps.recorder.recovered(name, recovered);
  return { executors: recovered, stored: messages.size };

  function restore(info: AssignmentInfo, record: Versioned<TaskRecord>, state: State): Entry {
    const entry = ledger.add(info, state, record.value.storedAt);
    entry.record = record;
    return entry;
  }

  /** What the restored state still has to do. */
  function resume(entry: Entry, stored: PendingMessage | undefined): void {
    const { state } = entry;
    entry.sequence = stored?.sequence ?? null;
    const record = entry.record?.value;
    if (record?.claimedBy != null && (state.kind === "claimed" || state.kind === "running")) {
      const { claimedBy: claim, logOffset, steps } = record;
      offers.recoverClaimed(entry.info, { claim, logOffset, steps });
    }
    if (state.kind === "terminal") {
      if (state.marker === "pending") deps.run(entry, { kind: "mark" });
      else if (state.presence === "ended") deps.run(entry, { kind: "delete_executor" });
      else if (state.presence === "gone") deps.run(entry, { kind: "finish" });
    }
    if (stored === undefined && (state.kind === "starting" || state.kind === "stored")) {
      const detail = "the stored task is gone from the queue";
      ledger.dispatch(entry.info.id, { kind: "gave_up", code: "payload_lost", detail });
    }
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

function stateWith(executor: Executor, record: TaskRecord, stored: boolean): State {
  const presence: Presence = executor.ended === null ? "alive" : "ended";
  if (executor.terminal || record.terminal !== null) {
    return {
      kind: "terminal",
      result: record.terminal?.result ?? "failure",
      executor: executor.name,
      presence,
      marker: executor.terminal ? "held" : "pending",
      message: "gone",
    };
  }
  if (record.claimedBy === null) return { kind: "starting", executor: executor.name };
  return stored
    ? { kind: "claimed", executor: executor.name, presence, ack: "waiting", final: null }
    : { kind: "running", executor: executor.name, presence };
}

function stateWithout(record: TaskRecord, stored: boolean): State {
  const executor = record.claimedBy?.executor ?? null;
  if (record.terminal !== null) {
    return {
      kind: "terminal",
      result: record.terminal.result,
      executor,
      presence: "gone",
      marker: "moot",
      message: "gone",
    };
  }
  if (executor === null) return { kind: "stored" };
  return stored
    ? { kind: "claimed", executor, presence: "gone", ack: "waiting", final: null }
    : { kind: "running", executor, presence: "gone" };
}

function infoOf(id: AssignmentId, taskId: TaskId, record: TaskRecord): AssignmentInfo {
  return {
    id,
    taskId,
    backend: record.backend,
    identity: { spiffeId: record.spiffeId, fork: record.fork },
    repository: record.repository,
    job: record.job,
    runId: record.runId,
    giteaUrl: record.giteaUrl,
    serverUrl: record.serverUrl,
  };
}

async function listMessages(
  queue: AssignmentQueue,
  backend: BackendName,
  signal: AbortSignal,
): Promise<Map<AssignmentId, PendingMessage>> {
  const messages = new Map<AssignmentId, PendingMessage>();
  let fromSequence = 1;
  while (true) {
    const page = await queue.list(backend, { fromSequence, limit: PAGE }, { signal });
    for (const message of page) messages.set(message.id, message);
    const last = page.at(-1);
    if (page.length < PAGE || last === undefined) return messages;
    fromSequence = last.sequence + 1;
  }
}

const PAGE = 500;
