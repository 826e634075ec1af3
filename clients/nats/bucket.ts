import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import { sameBytes } from "../../lib/bytes.ts";
import type { Clock } from "../../lib/clock.ts";
import { demandApi, persist, store } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { isTransient } from "./errors.ts";
import { decodeJson, encodeJson, type Json, numberAt } from "./json.ts";
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
  /** Removes the key unless it was written after `revision`; resolves to whether anything was removed. */
  remove(key: string, revision: number, call: Call): Promise<boolean>;
  /** Every key that matches, wildcards as in subjects. */
  list(pattern: string, call: Call): Promise<KeyValue[]>;
  /**
   * Calls back when somebody may have written the key: a hint, the value must be read. Kept over
   * reconnects until the signal aborts.
   */
  hint(key: string, listener: () => void, signal: AbortSignal): void;
}

const PREFIX = `$KV.${BUCKET}.`;
const MAX_KEYS = 1_000_000;

/** The bucket `CI_RUNNER_STATE`; it must exist: `ensureStreams`. */
export function createBucket(connection: NatsConnection, { clock }: { clock: Clock }): Bucket {
  const read = async (key: string, call: Call) => {
    const stored = await lastOf(connection, { stream: BUCKET_STREAM, subject: PREFIX + key }, call);
    return stored === undefined ? undefined : keyValue(stored);
  };
  return {
    get: (key, call) => persist(clock, () => read(key, call), call),
    async put(key, value, revision, call) {
      const data = encodeJson(value);
      let doubt = false;
      return await persist(clock, async () => {
        try {
          const ack = await store(connection, {
            subject: PREFIX + key,
            data,
            headers: { "Nats-Expected-Last-Subject-Sequence": String(revision) },
            action: `Write "${key}"`,
          }, call);
          return ack.sequence;
        } catch (error) {
          if (isTransient(error)) doubt = true;
          if (!doubt || !(error instanceof QueueError) || error.code !== "conflict") throw error;
          // An earlier try of ours may be what stands there now.
          const current = await lastOf(
            connection,
            { stream: BUCKET_STREAM, subject: PREFIX + key },
            call,
          );
          if (current === undefined || current.sequence <= revision) throw error;
          if (!sameBytes(current.data, data)) throw error;
          return current.sequence;
        }
      }, call);
    },
    remove: (key, revision, call) =>
      persist(clock, async () => {
        // A purge up to the revision leaves nothing behind, not even a marker, and spares later writes.
        const body = await demandApi(connection, {
          path: `STREAM.PURGE.${BUCKET_STREAM}`,
          body: { filter: PREFIX + key, seq: revision + 1 },
          action: `Delete "${key}"`,
        }, call);
        return numberAt(body, "purged") > 0;
      }, call),
    list: (pattern, call) =>
      persist(clock, async () => {
        const found = await readStored(connection, {
          stream: BUCKET_STREAM,
          subject: PREFIX + pattern,
          fromSequence: 1,
          limit: MAX_KEYS,
        }, { ...call, clock });
        return found.map(keyValue).filter((each) => each !== undefined);
      }, call),
    hint(key, listener, signal) {
      let subscribed = false;
      const look = () => {
        if (!subscribed) {
          const subscription = connection.wire.subscribe(PREFIX + key, listener);
          subscribed = subscription !== undefined;
          signal.addEventListener("abort", () => subscription?.unsubscribe(), { once: true });
        }
        listener();
      };
      connection.onConnect(look, signal);
      if (connection.status().kind === "connected") look();
    },
  };
}

/** Deleted keys of other KV clients are messages that say so in a header. */
function keyValue(stored: Stored): KeyValue | undefined {
  if (stored.headers["KV-Operation"] !== undefined) return undefined;
  return {
    key: stored.subject.slice(PREFIX.length),
    value: decodeJson(stored.data),
    revision: stored.sequence,
  };
}
