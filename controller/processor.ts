import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { type BackendName, taskIdOf } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import type { Content } from "./model/state.ts";
import type { Offers } from "./offers.ts";
import type { Pool } from "./pool.ts";
import type { AssignmentQueue, StoredMessage } from "./queue.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Records } from "./records.ts";

/** A message opened: the envelope's outcome (SPEC 6). */
export type Opened =
  | { readonly kind: "readable"; readonly info: AssignmentInfo; readonly task: Task }
  | { readonly kind: "invalid"; readonly detail: string }
  | { readonly kind: "unreadable"; readonly detail: string };

/**
 * The consumer of one backend: takes messages in stream order, only as many as there are free slots,
 * reads the record first, and lets each be `delivered`. Blocks until aborted.
 */
export function createProcessor(deps: {
  readonly backend: BackendName;
  readonly queue: AssignmentQueue;
  readonly records: Records;
  readonly writer: RecordWriter;
  readonly offers: Offers;
  readonly pool: Pool;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly logger: Logger;
  open(data: Uint8Array): Promise<Opened>;
  nonce(): string;
  /** How many steps the job has, for states that the controller sends itself. */
  stepsOf(task: Task): number;
  /** Looks at an executor in the making again: its message has come. */
  recheck(entry: Entry): void;
}): { run(signal: AbortSignal): Promise<void> } {
  const { ledger, clock, offers } = deps;
  const logger = deps.logger.child({ component: "worker", backend: deps.backend });

  const complain = (message: StoredMessage, error: unknown) =>
    logger.error("assignment processing error", { assignment: message.id, error });

  /** Claimed or ended before: the message is only a leftover. */
  const isLeftover = (record: TaskRecord | undefined) =>
    record !== undefined && (record.claimedBy !== null || record.terminal !== null);

  const process = async (message: StoredMessage, signal: AbortSignal) => {
    const taskId = taskIdOf(message.id);
    if (taskId === undefined) {
      complain(message, new Error(`Read message ${message.sequence}: id "${message.id}" is none`));
      await message.terminate("not an assignment id", { signal });
      return;
    }
    const record = (await deps.records.get(taskId, { signal }))?.value;
    const known = ledger.get(message.id);
    if (isLeftover(record)) {
      if (known === undefined) return await message.ack({ signal });
      take(known, message);
      return ledger.dispatch(message.id, READABLE_NO_SLOT);
    }
    const opened = await deps.open(message.data);
    const content = judge(message, opened);
    const info = opened.kind === "readable" ? opened.info : known?.info ?? infoOf(message, record);
    const entry = known ?? ledger.add(info, { kind: "stored" }, message.storedAt);
    const again = entry.message !== null;
    take(entry, message);
    if (opened.kind === "readable") {
      entry.info = opened.info;
      await deps.writer.ensure(entry, {
        ...firstRecord(opened.info, message.storedAt, deps.nonce()),
        steps: Array.from({ length: deps.stepsOf(opened.task) }, (_, id) => unstarted(id)),
      }, signal);
      const until = entry.record?.value.parkedUntil ?? null;
      if (until !== null && until > clock.now() && entry.state.kind === "stored") {
        message.nak(until - clock.now());
        return;
      }
    }
    const slot = deps.pool.admits(message.id) ? "free" : "none";
    const before = entry.state.kind;
    ledger.dispatch(message.id, { kind: "delivered", content, slot });
    // An executor that an earlier process had begun to make waited for its message.
    if (!again && (before === "admitted" || before === "starting")) deps.recheck(entry);
  };

  const judge = (message: StoredMessage, opened: Opened): Content => {
    if (opened.kind !== "readable") return opened;
    if (opened.info.id !== message.id) {
      return { kind: "invalid", detail: `the message is named ${message.id}, its content is not` };
    }
    return offers.offer(opened.info, opened.task) === "conflict"
      ? { kind: "conflicting", detail: "another task is on offer under this id" }
      : { kind: "readable" };
  };

  const take = (entry: Entry, message: StoredMessage) => {
    entry.message = message;
    entry.sequence = message.sequence;
    entry.deliveries = message.deliveries;
    entry.nextTryAt = null;
  };

  return {
    async run(signal) {
      for await (const message of deps.queue.consume(deps.backend, deps.pool, { signal })) {
        try {
          await process(message, signal);
        } catch (error) {
          if (signal.aborted) return;
          // The record or the store was out of reach: the message comes again.
          complain(message, error);
          message.nak(RETRY_MS);
        }
      }
    },
  };
}

const RETRY_MS = 2_000;
const READABLE_NO_SLOT = {
  kind: "delivered",
  content: { kind: "readable" },
  slot: "none",
} as const;

function unstarted(id: number) {
  return { id, result: null, startedAt: 0, stoppedAt: 0, logIndex: 0, logLength: 0 };
}

/** What is known of a message that cannot be opened: enough to show it and to tell Gitea. */
function infoOf(message: StoredMessage, record: TaskRecord | undefined): AssignmentInfo {
  const taskId = taskIdOf(message.id);
  if (taskId === undefined) throw new Error(`Read message: "${message.id}" is no assignment id`);
  return {
    id: message.id,
    taskId,
    backend: message.backend,
    identity: { spiffeId: record?.spiffeId ?? "", fork: record?.fork ?? true },
    repository: record?.repository ?? message.headers["Gdr-Repository"] ?? "",
    job: record?.job ?? message.headers["Gdr-Job"] ?? "",
    runId: record?.runId ?? message.headers["Gdr-Run-Id"] ?? null,
    giteaUrl: record?.giteaUrl ?? null,
    serverUrl: record?.serverUrl ?? null,
  };
}

/** The record of an assignment nobody has worked on. */
export function firstRecord(
  info: AssignmentInfo,
  storedAt: number,
  nonce: string,
): Omit<TaskRecord, "epoch"> {
  return {
    backend: info.backend,
    repository: info.repository,
    job: info.job,
    spiffeId: info.identity.spiffeId,
    fork: info.identity.fork,
    runId: info.runId,
    giteaUrl: info.giteaUrl,
    serverUrl: info.serverUrl,
    storedAt,
    nonce,
    uid: null,
    claimedBy: null,
    logOffset: 0,
    steps: [],
    failures: 0,
    parkedUntil: null,
    released: null,
    terminal: null,
  };
}
