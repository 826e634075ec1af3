import type { Call } from "../../controller/backend.ts";
import type { JournalEntry, StoredEntry } from "../../controller/journal.ts";
import type { AssignmentId, BackendName, ExecutorName } from "../../controller/model/ids.ts";
import { isBackendName, parseAssignmentId } from "../../controller/model/ids.ts";
import type { JournalEvent } from "../../controller/model/state.ts";
import { abortable } from "../../lib/abortable.ts";
import { isObject } from "../../lib/json_object.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { demandApi, persist, store } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { decodeJson, encodeJson, numberAt, objectAt, textOf } from "./json.ts";
import { MESSAGE_ID } from "./message.ts";
import { readStored, type Stored } from "./stored.ts";
import { EVENTS_BASE, EVENTS_STREAM } from "./streams.ts";

/** Which entries to read. */
export interface EventQuery {
  /** Only this assignment's. */
  readonly assignment?: AssignmentId;
  /** Oldest first: from this sequence on. Newest first: down from this sequence. */
  readonly fromSeq?: number;
  readonly limit: number;
  /** Default: oldest first. */
  readonly newestFirst?: boolean;
}

/** History in the stream `CI_RUNNER_EVENTS`. */
export interface EventLog extends AsyncDisposable {
  /** Takes an entry and returns at once. When the buffer is full the oldest entry is dropped. */
  append(entry: JournalEntry): void;
  /** Reads stored entries; waits and retries while the server is away. Throws `QueueError`. */
  read(query: EventQuery, call: Call): Promise<StoredEntry[]>;
  /** Resolves when everything taken so far is stored; rejects with the signal's reason. */
  flush(signal: AbortSignal): Promise<void>;
  /** Entries dropped since the start. */
  dropped(): number;
}

const BUFFER = 10_000;
const BATCH = 256;
/** Entries of a moment go out together: one confirmation for all. */
const GATHER_MS = 10;
const CLOSE_MS = 2_000;

/** Opens the log; dispose it to store what is left, for at most two seconds. */
export function createEventLog(
  connection: NatsConnection,
  deps: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly bufferSize?: number;
    /** Called before each write. A retryable `QueueError` is waited out; any other ends the log. */
    guard?(): void;
  },
): EventLog {
  const { clock } = deps;
  const logger = deps.logger.child({ component: "events" });
  const size = deps.bufferSize ?? BUFFER;
  const origin = crypto.randomUUID();
  const closing = new AbortController();
  let buffer: { readonly id: string; readonly entry: JournalEntry }[] = [];
  let counter = 0;
  let lost = 0;
  let wake = Promise.withResolvers<void>();
  let idle: PromiseWithResolvers<void> | null = null;
  let failure: unknown = null;

  /**
   * All but the last are sent without asking for a confirmation: on one connection the server stores
   * in order, so that the last one's stands for all. A lost connection loses that one too, and all
   * are sent again under the same ids.
   */
  const send = async (batch: typeof buffer) => {
    const last = batch.at(-1);
    if (last === undefined) return;
    await connection.ready({ signal: closing.signal });
    deps.guard?.();
    for (const item of batch.slice(0, -1)) {
      connection.wire.publish(subjectOf(item.entry), encodeJson(item.entry), {
        headers: { [MESSAGE_ID]: item.id },
      });
    }
    await store(connection, {
      subject: subjectOf(last.entry),
      data: encodeJson(last.entry),
      headers: { [MESSAGE_ID]: last.id },
      action: "Store history",
    }, { signal: closing.signal });
  };

  const run = async () => {
    const { signal } = closing;
    while (!signal.aborted) {
      if (buffer.length === 0) {
        idle?.resolve();
        idle = null;
        await wake.promise;
        await clock.sleep(GATHER_MS, signal);
      }
      const batch = buffer.slice(0, BATCH);
      await persist(clock, () => send(batch), { signal });
      // Some of the batch may have been dropped meanwhile.
      const done = new Set(batch.map((item) => item.id));
      buffer = buffer.filter((item) => !done.has(item.id));
      wake = Promise.withResolvers();
    }
  };
  const running = run().catch((error) => {
    failure = error;
    if (!closing.signal.aborted) logger.error("history is not stored any more", { error });
    idle?.reject(error);
  });

  const flush = async (signal: AbortSignal) => {
    signal.throwIfAborted();
    if (buffer.length === 0) return;
    if (failure !== null) throw failure;
    idle ??= Promise.withResolvers();
    const { promise } = idle;
    promise.catch(() => {});
    wake.resolve();
    await abortable(promise, signal);
  };

  return {
    append(entry) {
      if (closing.signal.aborted) return;
      if (buffer.length >= size) {
        buffer.shift();
        // Said once in a while only: this may happen a thousand times a second.
        if (lost++ % 1_000 === 0) logger.warn("history entries are dropped", { dropped: lost });
      }
      buffer.push({ id: `${origin}-${counter++}`, entry });
      wake.resolve();
    },
    read: (query, call) =>
      persist(clock, () => readEntries(connection, query, { ...call, clock }), call),
    flush,
    dropped: () => lost,
    async [Symbol.asyncDispose]() {
      using timeout = clock.timeout(CLOSE_MS);
      await flush(timeout.signal).catch(() => {});
      closing.abort();
      wake.resolve();
      await running;
    },
  };
}

function subjectOf(entry: JournalEntry): string {
  return `${EVENTS_BASE}.${entry.backend}.${entry.assignment}`;
}

async function readEntries(
  connection: NatsConnection,
  query: EventQuery,
  call: Call & { readonly clock: Clock },
): Promise<StoredEntry[]> {
  const subject = `${EVENTS_BASE}.*.${query.assignment ?? "*"}`;
  const from = (fromSequence: number, limit: number) =>
    readStored(connection, { stream: EVENTS_STREAM, subject, fromSequence, limit }, call);
  if (query.newestFirst !== true) {
    return entriesOf(await from(query.fromSeq ?? 1, query.limit));
  }
  const { first, last } = await bounds(connection, call);
  let high = Math.min(query.fromSeq ?? last, last);
  if (query.assignment !== undefined) {
    // One assignment has few entries, anywhere in the stream.
    const all = (await from(first, MAX_OF_ONE)).filter(({ sequence }) => sequence <= high);
    return entriesOf(all.toReversed()).slice(0, query.limit);
  }
  const found: StoredEntry[] = [];
  while (found.length < query.limit && high >= first) {
    const low = Math.max(first, high - (query.limit - found.length) + 1);
    const window = (await from(low, high - low + 1)).filter(({ sequence }) => sequence <= high);
    found.push(...entriesOf(window.toReversed()));
    high = low - 1;
  }
  return found.slice(0, query.limit);
}

const MAX_OF_ONE = 10_000;

async function bounds(connection: NatsConnection, call: Call) {
  const body = await demandApi(connection, {
    path: `STREAM.INFO.${EVENTS_STREAM}`,
    action: "Look at the events stream",
  }, call);
  const state = objectAt(body, "state");
  return { first: Math.max(1, numberAt(state, "first_seq")), last: numberAt(state, "last_seq") };
}

function entriesOf(messages: readonly Stored[]): StoredEntry[] {
  return messages.map(entryOf).filter((entry) => entry !== undefined);
}

/** Undefined for what is no entry: another release may write other things here. */
function entryOf({ sequence, data }: Stored): StoredEntry | undefined {
  const json = decodeJson(data);
  const { event, component, backend, assignment } = json;
  if (typeof event !== "string" || !isBackendName(backend)) return undefined;
  const id = typeof assignment === "string" ? parseAssignmentId(assignment) : undefined;
  if (id === undefined) return undefined;
  return {
    seq: sequence,
    at: numberAt(json, "at"),
    event: event as JournalEvent,
    component: component === "scheduler" || component === "lifecycle" ? component : "worker",
    backend: backend satisfies BackendName,
    assignment: id,
    executor: textOf(json.executor) as ExecutorName | null,
    phase: textOf(json.phase),
    retryDelayMs: numberAt(json, "retryDelayMs"),
    detail: textOf(json.detail),
    ...readSubject(json.subject),
  };
}

/** Of entries that older releases have written there is none. */
function readSubject(value: unknown): Pick<StoredEntry, "subject"> {
  if (!isObject(value)) return {};
  const { repository, job, ref, runId, giteaUrl } = value;
  if (typeof repository !== "string" || typeof job !== "string") return {};
  return {
    subject: {
      repository,
      job,
      ...typeof ref === "string" ? { ref } : {},
      runId: textOf(runId),
      giteaUrl: textOf(giteaUrl),
    },
  };
}
