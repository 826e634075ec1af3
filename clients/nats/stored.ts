import type { Msg } from "nats";
import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import { abortable, onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import { plainHeaders } from "./api.ts";
import type { NatsConnection } from "./connection.ts";
import { encodeJson } from "./json.ts";

/** A message as it lies in a stream. */
export interface Stored {
  readonly sequence: number;
  readonly subject: string;
  /** Milliseconds since the epoch. */
  readonly storedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Uint8Array;
}

const BATCH = 1_000;
const BATCH_BYTES = 8 * 1024 * 1024;
const PATIENCE_MS = 5_000;
const END_OF_BATCH = 204;
const NOT_FOUND = 404;

/** The last message of a subject by direct get; undefined when there is none. One try. */
export function lastOf(
  connection: NatsConnection,
  where: { readonly stream: string; readonly subject: string },
  call: Call,
): Promise<Stored | undefined> {
  // The short form of the request: the subject is part of the request's own.
  return direct(connection, `${where.stream}.${where.subject}`, new Uint8Array(), call);
}

/** The message of a sequence; undefined when it is not stored any more. One try. */
export function messageAt(
  connection: NatsConnection,
  where: { readonly stream: string; readonly sequence: number },
  call: Call,
): Promise<Stored | undefined> {
  return direct(connection, where.stream, encodeJson({ seq: where.sequence }), call);
}

/**
 * Messages of a stream under `subject` (wildcards allowed) from `fromSequence` on, at most `limit`,
 * in stream order, without taking them. One try; throws `QueueError`.
 */
export async function readStored(
  connection: NatsConnection,
  page: {
    readonly stream: string;
    readonly subject: string;
    readonly fromSequence: number;
    readonly limit: number;
  },
  call: Call & { readonly clock: Clock },
): Promise<Stored[]> {
  const found: Stored[] = [];
  let next = Math.max(1, page.fromSequence);
  const batched = hasBatches(connection.facts()?.version ?? "");
  while (found.length < page.limit) {
    const want = Math.min(BATCH, page.limit - found.length);
    const request = { seq: next, next_by_subj: page.subject };
    const got = batched
      ? await readBatch(connection, page.stream, { ...request, batch: want }, call)
      : await readOne(connection, page.stream, request, call);
    found.push(...got.messages);
    const last = got.messages.at(-1);
    if (got.ended || last === undefined) break;
    next = last.sequence + 1;
  }
  return found;
}

interface Batch {
  readonly messages: readonly Stored[];
  /** Nothing more is stored behind these. */
  readonly ended: boolean;
}

async function readOne(
  connection: NatsConnection,
  stream: string,
  request: object,
  call: Call,
): Promise<Batch> {
  const message = await direct(connection, stream, encodeJson(request), call);
  return { messages: message === undefined ? [] : [message], ended: message === undefined };
}

/** Many answers to one request (nats-server 2.11 and later); the last one says 204. */
async function readBatch(
  connection: NatsConnection,
  stream: string,
  request: object,
  { clock, signal }: Call & { readonly clock: Clock },
): Promise<Batch> {
  await connection.ready({ signal });
  const messages: Stored[] = [];
  const done = Promise.withResolvers<Batch>();
  const inbox = connection.wire.inbox();
  const stop = new AbortController();
  const subscription = connection.wire.subscribe(inbox, (message) => {
    const code = message.headers?.code ?? 0;
    if (code === END_OF_BATCH) {
      done.resolve({ messages, ended: message.headers?.get("Nats-Num-Pending") === "0" });
    } else if (code === NOT_FOUND) done.resolve({ messages, ended: true });
    else if (code >= 300) done.reject(refused(stream, message));
    else messages.push(storedOf(message));
  });
  if (subscription === undefined) {
    throw new QueueError("unavailable", "Read stored messages: not connected");
  }
  connection.onConnect(() => {
    done.reject(new QueueError("unavailable", "Read stored messages: the connection was lost"));
  }, stop.signal);
  using timeout = clock.timeout(PATIENCE_MS);
  onAbort(timeout.signal, () => {
    done.reject(new QueueError("timeout", `Read stored messages of "${stream}": no answer`));
  });
  try {
    connection.wire.publish(
      `$JS.API.DIRECT.GET.${stream}`,
      encodeJson({ ...request, max_bytes: BATCH_BYTES }),
      { reply: inbox },
    );
    return await abortable(done.promise, signal);
  } finally {
    stop.abort();
    subscription.unsubscribe();
  }
}

async function direct(
  connection: NatsConnection,
  path: string,
  request: Uint8Array,
  call: Call,
): Promise<Stored | undefined> {
  const message = await connection.wire.request(`$JS.API.DIRECT.GET.${path}`, request, call);
  const code = message.headers?.code ?? 0;
  if (code === NOT_FOUND) return undefined;
  if (code >= 300) throw refused(path, message);
  return storedOf(message);
}

function refused(path: string, message: Msg): QueueError {
  const { code = 0, description = "" } = message.headers ?? {};
  return new QueueError("refused", `Read stored messages of "${path}": ${description} (${code})`, {
    retryable: code >= 500,
  });
}

function storedOf(message: Msg): Stored {
  const { "Nats-Sequence": sequence, "Nats-Time-Stamp": at, "Nats-Subject": subject, ...headers } =
    plainHeaders(message);
  return {
    sequence: Number(sequence),
    subject: subject ?? "",
    storedAt: Date.parse(at ?? ""),
    headers,
    // A copy: the library hands out a view of a whole network read.
    data: new Uint8Array(message.data),
  };
}

function hasBatches(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 2 || (major === 2 && minor >= 11);
}
