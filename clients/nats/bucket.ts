import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import { onAbort } from "../../lib/abortable.ts";
import { sameBytes } from "../../lib/bytes.ts";
import type { Clock } from "../../lib/clock.ts";
import { demandApi, persist, store } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { isTransient } from "./errors.ts";
import { decodeJson, encodeJson, type Json } from "./json.ts";
import { lastOf, readStored, type Stored } from "./stored.ts";
import { BUCKET, BUCKET_STREAM } from "./streams.ts";

/** A key's value with its revision (the stream's sequence). */
export interface KeyValue {
  readonly key: string;
  readonly value: Json;
  readonly revision: number;
}

/**
 * The KV bucket in the layout that every KV client uses: one subject `$KV.<bucket>.<key>` per key,
 * the last message of a subject is its value. All methods wait and retry while the server is away.
 */
export interface Bucket {
  /** Read from the server. */
  get(key: string, call: Call): Promise<KeyValue | undefined>;
  /**
   * Writes if the key's revision is `revision` (0 = absent) and resolves to the new one; throws
   * `QueueError` `conflict` otherwise. A write whose answer was lost is recognised as our own.
   */
  put(key: string, value: unknown, revision: number, call: Call): Promise<number>;
  /**
   * Removes the key unless it was written after `revision`; resolves to whether it is removed now.
   *
   * What stays is a marker. Nothing less holds: a nats-server 2.15 that is killed forgets, even when
   * it syncs each message, that a subject was purged, and that an older value had made room for a
   * newer one; the last message of a subject alone is sure.
   */
  remove(key: string, revision: number, call: Call): Promise<boolean>;
  /**
   * Takes away the markers of keys that match and were removed over ten minutes ago, as far as no
   * value stands before them. By then the server has written down what it would forget.
   */
  sweep(pattern: string, call: Call): Promise<void>;
  /** Every key that matches, wildcards as in subjects. */
  list(pattern: string, call: Call): Promise<KeyValue[]>;
  /**
   * Calls back when somebody may have written the key, and again a moment later: a hint, the value must
   * be read. Kept over reconnects until the signal aborts.
   */
  hint(key: string, listener: () => void, signal: AbortSignal): void;
}

/** What is written, and the revision over which alone it may be (0 = none). */
interface Written {
  readonly data: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly over: number;
}

const PREFIX = `$KV.${BUCKET}.`;
const MAX_KEYS = 1_000_000;
/** nats-server writes its index of a stream every two minutes. */
const MARKER_MS = 600_000;
/**
 * nats-server passes a message on to subscribers before its stream has stored it: of the reads that a
 * message had caused, 2 to 6 in 100 still found the value before it.
 */
const STORED_AFTER_MS: readonly number[] = [50, 500];
/** Until a subscription that the server has refused is tried again: its permissions may be changed. */
const REFUSED_MS = 30_000;
const EXPECTED = "Nats-Expected-Last-Subject-Sequence";
const DELETED = { "KV-Operation": "DEL" };
const NOTHING = new Uint8Array();

/** The bucket `CI_RUNNER_STATE`; it must exist: `ensureStreams`. */
export function createBucket(connection: NatsConnection, { clock }: { clock: Clock }): Bucket {
  const last = (key: string, call: Call) =>
    lastOf(connection, { stream: BUCKET_STREAM, subject: PREFIX + key }, call);
  const read = async (key: string, call: Call) => {
    const stored = await last(key, call);
    return stored === undefined ? undefined : keyValue(stored);
  };
  const write = async (key: string, message: Written, call: Call) => {
    const ack = await store(connection, {
      subject: PREFIX + key,
      data: message.data,
      headers: { ...message.headers, [EXPECTED]: String(message.over) },
      action: `Write "${key}"`,
    }, call);
    return ack.sequence;
  };
  const readAll = (pattern: string, call: Call) =>
    readStored(connection, {
      stream: BUCKET_STREAM,
      subject: PREFIX + pattern,
      fromSequence: 1,
      limit: MAX_KEYS,
    }, { ...call, clock });
  const mark = async (key: string, revision: number, call: Call) => {
    try {
      await write(key, { data: NOTHING, headers: DELETED, over: revision }, call);
      return true;
    } catch (error) {
      if (!(error instanceof QueueError) || error.code !== "conflict") throw error;
      const current = await last(key, call);
      // Ours of an earlier try, or the same done by somebody else.
      return current !== undefined && isMarker(current);
    }
  };
  return {
    get: (key, call) => persist(clock, () => read(key, call), call),
    async put(key, value, revision, call) {
      const data = encodeJson(value);
      let doubt = false;
      let over = revision;
      return await persist(clock, async () => {
        try {
          return await write(key, { data, over }, call);
        } catch (error) {
          if (isTransient(error)) doubt = true;
          if (!(error instanceof QueueError) || error.code !== "conflict") throw error;
          const current = await last(key, call);
          if (current === undefined || current.sequence <= over) throw error;
          // An earlier try of ours may be what stands there now.
          if (doubt && sameBytes(current.data, data)) return current.sequence;
          if (revision !== 0 || !isMarker(current)) throw error;
          over = current.sequence;
          return await write(key, { data, over }, call);
        }
      }, call);
    },
    remove: (key, revision, call) => persist(clock, () => mark(key, revision, call), call),
    sweep: (pattern, call) =>
      persist(clock, async () => {
        const found = await readAll(pattern, call);
        const young = clock.now() - MARKER_MS;
        const first = found.find((each) => !isMarker(each) || each.storedAt > young);
        const swept = first === undefined ? found : found.slice(0, found.indexOf(first));
        const last = swept.at(-1);
        if (last === undefined) return;
        await demandApi(connection, {
          path: `STREAM.PURGE.${BUCKET_STREAM}`,
          body: { filter: PREFIX + pattern, seq: last.sequence + 1 },
          action: `Sweep "${pattern}"`,
        }, call);
      }, call),
    list: (pattern, call) =>
      persist(clock, async () => {
        const found = await readAll(pattern, call);
        return found.map(keyValue).filter((each) => each !== undefined);
      }, call),
    hint(key, listener, signal) {
      let subscribed = false;
      const tell = () => {
        listener();
        for (const ms of STORED_AFTER_MS) clock.sleep(ms, signal).then(listener, () => {});
      };
      const refused = () => {
        subscribed = false;
        clock.sleep(REFUSED_MS, signal).then(look, () => {});
      };
      const look = () => {
        if (!subscribed) {
          const subscription = connection.wire.subscribe(PREFIX + key, tell, refused);
          subscribed = subscription !== undefined;
          onAbort(signal, () => subscription?.unsubscribe());
        }
        listener();
      };
      connection.onConnect(look, signal);
      if (connection.status().kind === "connected") look();
    },
  };
}

/** A deleted key, of ours or of other KV clients, is a message that says so in a header. */
function isMarker({ headers }: Stored): boolean {
  return headers["KV-Operation"] !== undefined;
}

function keyValue(stored: Stored): KeyValue | undefined {
  if (isMarker(stored)) return undefined;
  return {
    key: stored.subject.slice(PREFIX.length),
    value: decodeJson(stored.data),
    revision: stored.sequence,
  };
}
