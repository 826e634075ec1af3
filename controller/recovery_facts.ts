import type { Backend, Executor } from "./backend.ts";
import type { Recovered } from "./entry.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { type AssignmentId, assignmentIdOf, type BackendName, type TaskId } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import type { Opened } from "./processor.ts";
import { UNPROVEN, type Unproven } from "./proofs.ts";
import type { AssignmentQueue, PendingMessage } from "./queue.ts";
import type { Versioned } from "./records.ts";
import type { Identified, Stranger } from "./strangers.ts";
import type { Ownership, Worker } from "./worker.ts";

/** One assignment as the durable stores tell of it. */
export interface Found {
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
export interface Facts {
  readonly found: Found[];
  readonly strangers: readonly Stranger[];
  readonly unproven: readonly Omit<Unproven, "adopt">[];
  /** Nobody can ever begin anything in them. */
  readonly leftovers: readonly Executor[];
  /** Assignments that have a message. */
  readonly stored: number;
}

/** Where they are read. */
export interface FactsDeps {
  readonly worker: Worker;
  readonly records: ReadonlyMap<TaskId, Versioned<TaskRecord>>;
  readonly queue: AssignmentQueue;
  readonly ownership: Ownership;
  open(data: Uint8Array): Promise<Opened>;
  identify(executor: Executor): Identified;
}

/** Reads them; rejects while the backend cannot be listed or a store is away. */
export async function gatherFacts(deps: FactsDeps, signal: AbortSignal): Promise<Facts> {
  const { backend } = deps.worker;
  const executors = await backend.list({ signal });
  const messages = await listMessages(deps.queue, backend.name, signal);
  const { name } = backend;
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
    if (record === undefined && !messages.has(id) && isUnbegun(backend, executor)) {
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
  return { found: [...found.values()], strangers, unproven, leftovers, stored: messages.size };
}

/** It never had an identity: it was made by a create whose answer was lost, for a job that has ended. */
function isUnbegun({ bindsForGood = false }: Backend, { identityBound }: Executor): boolean {
  return bindsForGood && identityBound === false;
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

/** What a record tells of its assignment. */
export function infoOf(id: AssignmentId, taskId: TaskId, record: TaskRecord): AssignmentInfo {
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

const PAGE = 500;
