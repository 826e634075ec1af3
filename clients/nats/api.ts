import type { Msg } from "nats";
import type { Call } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import type { NatsConnection } from "./connection.ts";
import { type ApiError, apiFailure, isTransient } from "./errors.ts";
import { decodeJson, encodeJson, type Json, numberAt, objectAt, textOf } from "./json.ts";
import type { Headers } from "./requester.ts";

/** Answer of the JetStream API. */
export type ApiAnswer = { readonly kind: "ok"; readonly body: Json } | ApiError;

/** One request to `$JS.API.<path>`. API errors are answers; throws `QueueError` for what is none. */
export async function askApi(
  connection: NatsConnection,
  request: { readonly path: string; readonly body?: unknown },
  call: Call,
): Promise<ApiAnswer> {
  const message = await connection.wire.request(
    `$JS.API.${request.path}`,
    request.body === undefined ? NOTHING : encodeJson(request.body),
    call,
  );
  return answerOf(decodeJson(message.data));
}

/** The same, with API errors thrown as `QueueError`; `action` begins the message. */
export async function demandApi(
  connection: NatsConnection,
  request: { readonly path: string; readonly body?: unknown; readonly action: string },
  call: Call,
): Promise<Json> {
  const answer = await askApi(connection, request, call);
  if (answer.kind === "error") throw apiFailure(request.action, answer);
  return answer.body;
}

/** What JetStream says about a stored message. */
export interface PublishAck {
  readonly sequence: number;
  readonly duplicate: boolean;
}

/** Stores one message; resolves when JetStream has confirmed it. One try. */
export async function store(
  connection: NatsConnection,
  message: {
    readonly subject: string;
    readonly data: Uint8Array;
    readonly headers: Headers;
    readonly action: string;
  },
  call: Call,
): Promise<PublishAck> {
  const { subject, data, headers } = message;
  const reply = await connection.wire.request(subject, data, { ...call, headers });
  const answer = answerOf(decodeJson(reply.data));
  if (answer.kind === "error") throw apiFailure(message.action, answer);
  return { sequence: numberAt(answer.body, "seq"), duplicate: answer.body.duplicate === true };
}

/** Tries again, with growing pauses of 50 ms to 2 s, until it works, fails for good, or is aborted. */
export async function persist<T>(
  clock: Clock,
  operation: (attempt: number) => Promise<T>,
  { signal }: Call,
): Promise<T> {
  for (let attempt = 0;; attempt++) {
    signal.throwIfAborted();
    try {
      return await operation(attempt);
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error)) throw error;
      await clock.sleep(Math.min(50 * 2 ** Math.min(attempt, 6), 2_000), signal);
    }
  }
}

/** Headers of a message as plain values. */
export function plainHeaders(message: Msg): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const name of message.headers?.keys() ?? []) {
    plain[name] = message.headers?.get(name) ?? "";
  }
  return plain;
}

/** Milliseconds in nanoseconds, JetStream's unit. */
export function nanos(ms: number): number {
  return ms * 1_000_000;
}

const NOTHING = new Uint8Array();

function answerOf(body: Json): ApiAnswer {
  if (body.error === undefined) return { kind: "ok", body };
  const error = objectAt(body, "error");
  return {
    kind: "error",
    code: numberAt(error, "code"),
    errCode: numberAt(error, "err_code"),
    description: textOf(error.description) ?? "unknown error",
  };
}
