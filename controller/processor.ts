import type { WaitingReason } from "./admission.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Entry } from "./entry.ts";
import { firstRecord, infoOf } from "./first_record.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { type AssignmentId, type BackendName, taskIdOf } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";
import type { TaskRecord } from "./model/record.ts";
import type { Content, Event } from "./model/state.ts";
import { unstartedSteps } from "./model/steps.ts";
import type { Offers } from "./offers.ts";
import type { Pool } from "./pool.ts";
import type { AssignmentQueue, StoredMessage } from "./queue.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Records } from "./records.ts";

/** A message opened: the envelope's outcome. */
export type Opened =
  | { readonly kind: "readable"; readonly info: AssignmentInfo; readonly task: Task }
  | { readonly kind: "invalid"; readonly detail: string }
  | { readonly kind: "unreadable"; readonly detail: string };

/**
 * The consumer of one backend: takes messages in stream order, only as many as there are free slots,
 * reads the record first, and lets each be `delivered`. Messages are opened and their records written
 * side by side; they are delivered in the order of the stream. Blocks until aborted.
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
  /** Why a stored task waits now. */
  waiting(): WaitingReason;
  /** A message that cannot be opened now is given back for so long. */
  readonly parkMs: number;
  open(data: Uint8Array): Promise<Opened>;
  nonce(): string;
  /** How many steps the job has, for states that the controller sends itself. */
  stepsOf(task: Task): number;
  /** Why nothing is admitted although the pool may have room; null while it is. */
  closed(): { readonly code: ReasonCode; readonly detail: string } | null;
}): { run(signal: AbortSignal): Promise<void> } {
  const { ledger, offers } = deps;
  const logger = deps.logger.child({ component: "worker", backend: deps.backend });

  const complain = (message: StoredMessage, error: unknown) =>
    logger.error("assignment processing error", { assignment: message.id, error });

  const process = async (message: StoredMessage, turn: Promise<void>, signal: AbortSignal) => {
    const taskId = taskIdOf(message.id);
    if (taskId === undefined) {
      complain(message, new Error(`Read message ${message.sequence}: id "${message.id}" is none`));
      return await message.terminate("not an assignment id", { signal });
    }
    const record = (await deps.records.get(taskId, { signal }))?.value;
    const known = ledger.get(message.id);
    // Nobody can tell whether its executor has been handed the job already.
    if (known?.unproven && known.state.kind === "stored") return message.nak(RETRY_MS);
    if (known === undefined) return await admit(message, known, record, { turn, signal });
    switch (known.state.kind) {
      case "stored":
      case "parked":
        return await admit(message, known, record, { turn, signal });
      case "admitted":
      case "starting":
      case "ready":
        if (known.sequence === message.sequence) return take(known, message);
        return await another(known, message, signal);
      case "claimed":
      case "running":
      case "settling":
      case "terminal":
      case "cleaned":
        if (known.sequence !== message.sequence) return await message.ack({ signal });
        take(known, message);
        return ledger.dispatch(message.id, LEFTOVER);
      default:
        return known.state satisfies never;
    }
  };

  /** One whose executor is not being made yet. */
  const admit = async (
    message: StoredMessage,
    known: Entry | undefined,
    record: TaskRecord | undefined,
    { turn, signal }: { readonly turn: Promise<void>; readonly signal: AbortSignal },
  ) => {
    if (known?.state.kind === "parked" && known.state.until > deps.clock.now()) {
      take(known, message);
      return ledger.dispatch(message.id, LEFTOVER);
    }
    // Claimed or ended before, and forgotten: the message is only a leftover.
    if (isOver(known?.record?.value ?? record)) return await message.ack({ signal });
    const opened = await deps.open(message.data);
    const content = judge(message, opened);
    const readable = content.kind === "readable" && opened.kind === "readable";
    const info = readable ? opened.info : known?.info ?? infoOf(message, record);
    // The scheduler may have told of it meanwhile.
    const entry = ledger.get(message.id) ??
      ledger.add(info, { kind: "stored" }, message.storedAt, deps.waiting());
    take(entry, message);
    if (readable) {
      entry.info = opened.info;
      const steps = unstartedSteps(deps.stepsOf(opened.task));
      const first = firstRecord(opened.info, message.storedAt, deps.nonce());
      await deps.writer.ensure(entry, { ...first, steps }, signal);
    }
    await turn;
    ledger.dispatch(message.id, delivered(message, content));
  };

  const delivered = (message: StoredMessage, content: Content): Event => {
    if (deps.pool.admits(message.id)) return { kind: "delivered", content, slot: "free" };
    const closed = deps.closed();
    return closed === null
      ? { kind: "delivered", content, slot: "none" }
      : { kind: "delivered", content, slot: "none", waits: closed };
  };

  /** A second message under the id of one whose executor is being made. */
  const another = async (entry: Entry, message: StoredMessage, signal: AbortSignal) => {
    const content = judge(message, await deps.open(message.data));
    switch (content.kind) {
      case "readable": // The same task again: a publish that was repeated.
        return await message.ack({ signal });
      case "conflicting":
        entry.others = [...entry.others, message];
        return ledger.dispatch(message.id, delivered(message, content));
      case "invalid":
        complain(message, new Error(content.detail));
        return await message.terminate(content.detail, { signal });
      case "unreadable":
        return message.nak(deps.parkMs);
      default:
        return content satisfies never;
    }
  };

  const judge = (message: StoredMessage, opened: Opened): Content => {
    if (opened.kind !== "readable") return opened;
    if (opened.info.id !== message.id) {
      return { kind: "invalid", detail: `the message is named ${message.id}, its content is not` };
    }
    if (opened.info.backend !== deps.backend) {
      const detail = `the job is for ${opened.info.backend}, its message came to ${deps.backend}`;
      return { kind: "invalid", detail };
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

  /** One message, after an earlier one of the same id; never rejects. */
  const handle = async (
    message: StoredMessage,
    after: { readonly turn: Promise<void>; readonly same: Promise<void> | undefined },
    signal: AbortSignal,
  ) => {
    using _room = deps.pool.reserve();
    try {
      await after.same;
      await process(message, after.turn, signal);
    } catch (error) {
      if (signal.aborted) return;
      complain(message, error);
      giveBack(message);
    }
    // Whoever waits for this one waits for all before it.
    await after.turn;
  };

  /** The record or the store was out of reach: the message comes again. */
  const giveBack = (message: StoredMessage) => {
    const entry = ledger.get(message.id);
    if (entry?.message === message) entry.message = null;
    message.nak(RETRY_MS);
  };

  return {
    async run(signal) {
      const underWay = new Set<Promise<void>>();
      const latest = new Map<AssignmentId, Promise<void>>();
      let before = Promise.resolve();
      for await (const message of deps.queue.consume(deps.backend, deps.pool, { signal })) {
        const { id } = message;
        const work = handle(message, { turn: before, same: latest.get(id) }, signal);
        before = work;
        latest.set(id, work);
        underWay.add(work);
        work.finally(() => {
          underWay.delete(work);
          if (latest.get(id) === work) latest.delete(id);
        });
        if (underWay.size >= MAX_AT_ONCE) await Promise.race(underWay);
      }
      await Promise.all(underWay);
    },
  };
}

const MAX_AT_ONCE = 32;
const RETRY_MS = 2_000;
/** The content does not matter any more. */
const LEFTOVER = { kind: "delivered", content: { kind: "readable" }, slot: "none" } as const;

function isOver(record: TaskRecord | undefined): boolean {
  return record !== undefined && (record.claimedBy !== null || record.terminal !== null);
}
