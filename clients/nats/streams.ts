import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import type { Clock } from "../../lib/clock.ts";
import { askApi, demandApi, nanos, persist } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { apiFailure, ERR_CODE, isTransient } from "./errors.ts";
import { type Json, objectAt } from "./json.ts";

/** Names in JetStream. */
export interface StreamNames {
  /** `NATS_STREAM`. */
  readonly stream: string;
  /** `NATS_SUBJECT_BASE`: a backend's subject is base + `.` + backend. */
  readonly subjectBase: string;
}

/** Bucket of records and control flags. */
export const BUCKET = "CI_RUNNER_STATE";
/** The stream under the bucket, as every KV client names it. */
export const BUCKET_STREAM = `KV_${BUCKET}`;
/** Stream of history. */
export const EVENTS_STREAM = "CI_RUNNER_EVENTS";
/** Subjects of history: `ci.event.<backend>.<assignment id>`. */
export const EVENTS_BASE = "ci.event";

/** A fuse, not a limit of daily life: the pending limits stop far below it. */
const MAX_MESSAGES = 100_000;
const DUPLICATE_WINDOW_MS = 600_000;
const EVENTS_MAX_AGE_MS = 7 * 86_400_000;
const EVENTS_MAX_BYTES = 1024 ** 3;

/** What was made because it was not there. */
export interface Ensured {
  readonly made: readonly string[];
  /** The bucket was missing beside an existing stream: somebody deleted it, records are lost. */
  readonly bucketLost: boolean;
}

/**
 * Makes stream, bucket and events stream where they are absent, and checks them where they exist.
 * Never changes one. Waits while JetStream is not reachable; `onWait` is then called with why, at
 * every try. Throws `QueueError`: `differs` with the field, the value found and the value wanted;
 * `refused` when the account may not.
 */
export async function ensureStreams(
  connection: NatsConnection,
  names: StreamNames,
  { clock, signal, onWait }: Call & {
    readonly clock: Clock;
    readonly onWait?: (error: QueueError) => void;
  },
): Promise<Ensured> {
  const made: string[] = [];
  for (const wanted of [queueStream(names), bucketStream(), eventsStream()]) {
    const attempt = () =>
      ensure(connection, wanted, { signal }).catch((error) => {
        if (error instanceof QueueError && isTransient(error)) onWait?.(error);
        throw error;
      });
    if (await persist(clock, attempt, { signal })) made.push(wanted.name);
  }
  return { made, bucketLost: made.includes(BUCKET_STREAM) && !made.includes(names.stream) };
}

interface Wanted {
  readonly name: string;
  readonly config: Json;
  /** What is wrong with an existing configuration, if anything. */
  check(found: Json): Difference | undefined;
}

interface Difference {
  readonly field: string;
  readonly found: unknown;
  readonly wanted: unknown;
}

async function ensure(connection: NatsConnection, wanted: Wanted, call: Call): Promise<boolean> {
  const { name } = wanted;
  const info = await askApi(connection, { path: `STREAM.INFO.${name}` }, call);
  if (info.kind === "ok") {
    const difference = wanted.check(objectAt(info.body, "config"));
    if (difference !== undefined) throw differs(name, difference);
    return false;
  }
  if (info.errCode !== ERR_CODE.streamNotFound) throw apiFailure(`Look at stream "${name}"`, info);
  const action = `Make stream "${name}"`;
  await demandApi(connection, { path: `STREAM.CREATE.${name}`, body: wanted.config, action }, call);
  return true;
}

function differs(name: string, { field, found, wanted }: Difference): QueueError {
  const way = name === BUCKET_STREAM || name === EVENTS_STREAM
    ? "change it, or use an account of NATS in which it is free"
    : "change it, or set NATS_STREAM to another name";
  return new QueueError(
    "differs",
    `Use stream "${name}": its ${field} is ${JSON.stringify(found)}, needed is ${
      JSON.stringify(wanted)
    }; ${way}`,
    { retryable: false },
  );
}

function queueStream({ stream, subjectBase }: StreamNames): Wanted {
  return {
    name: stream,
    config: {
      name: stream,
      subjects: [`${subjectBase}.*`],
      retention: "workqueue",
      storage: "file",
      discard: "new",
      max_msgs: MAX_MESSAGES,
      allow_direct: true,
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
      num_replicas: 1,
    },
    check: (found) =>
      firstOf(
        equal(found, "retention", "workqueue"),
        equal(found, "storage", "file"),
        subjects(found, ["pod", "vm"].map((backend) => `${subjectBase}.${backend}`)),
        equal(found, "discard", "new"),
        equal(found, "allow_direct", true),
        atLeast(found, "duplicate_window", nanos(DUPLICATE_WINDOW_MS)),
        // Either of these would drop stored tasks in silence.
        equal(found, "max_age", 0),
        equal(found, "max_msgs_per_subject", -1),
        equal(found, "deny_delete", false),
        equal(found, "sealed", false),
      ),
  };
}

function bucketStream(): Wanted {
  const subject = `$KV.${BUCKET}.>`;
  return {
    name: BUCKET_STREAM,
    // What every KV client makes: so that `nats kv` can read it.
    config: {
      name: BUCKET_STREAM,
      subjects: [subject],
      retention: "limits",
      storage: "file",
      discard: "new",
      max_msgs_per_subject: 1,
      allow_direct: true,
      allow_rollup_hdrs: true,
      deny_delete: true,
      duplicate_window: nanos(120_000),
      num_replicas: 1,
    },
    check: (found) =>
      firstOf(
        equal(found, "storage", "file"),
        equal(found, "retention", "limits"),
        subjects(found, [subject]),
        equal(found, "allow_direct", true),
        equal(found, "max_age", 0),
        equal(found, "deny_purge", false),
      ),
  };
}

function eventsStream(): Wanted {
  return {
    name: EVENTS_STREAM,
    config: {
      name: EVENTS_STREAM,
      subjects: [`${EVENTS_BASE}.>`],
      retention: "limits",
      storage: "file",
      discard: "old",
      max_age: nanos(EVENTS_MAX_AGE_MS),
      max_bytes: EVENTS_MAX_BYTES,
      allow_direct: true,
      duplicate_window: nanos(DUPLICATE_WINDOW_MS),
      num_replicas: 1,
    },
    check: (found) =>
      firstOf(
        equal(found, "retention", "limits"),
        subjects(found, [`${EVENTS_BASE}.>`]),
        equal(found, "discard", "old"),
        equal(found, "allow_direct", true),
      ),
  };
}

function firstOf(...differences: (Difference | undefined)[]): Difference | undefined {
  return differences.find((difference) => difference !== undefined);
}

function equal(found: Json, field: string, wanted: unknown): Difference | undefined {
  // The server leaves out what is false, zero or not set.
  const value = found[field] ??
    (typeof wanted === "boolean" ? false : wanted === 0 ? 0 : undefined);
  const unlimited = wanted === -1 && (value === undefined || value === 0);
  return value === wanted || unlimited ? undefined : { field, found: value ?? null, wanted };
}

function atLeast(found: Json, field: string, wanted: number): Difference | undefined {
  const value = found[field];
  return typeof value === "number" && value >= wanted
    ? undefined
    : { field, found: value ?? null, wanted };
}

function subjects(found: Json, wanted: readonly string[]): Difference | undefined {
  const patterns = Array.isArray(found.subjects) ? found.subjects.map(String) : [];
  const covered = wanted.every((subject) => patterns.some((pattern) => covers(pattern, subject)));
  return covered ? undefined : { field: "subjects", found: patterns, wanted };
}

/** True when every subject that matches `subject` matches `pattern` too. */
function covers(pattern: string, subject: string): boolean {
  const [have, want] = [pattern.split("."), subject.split(".")];
  for (const [at, token] of have.entries()) {
    if (token === ">") return want.length > at;
    const other = want[at];
    if (other === undefined || other === ">" || (token !== "*" && token !== other)) return false;
  }
  return have.length === want.length;
}
