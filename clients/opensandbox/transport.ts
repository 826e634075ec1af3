import { SandboxError } from "../../backends/vm/sandboxes.ts";
import type { Clock } from "../../lib/clock.ts";
import { readAtMost } from "../../lib/bytes.ts";
import type { Secret } from "../../lib/secret.ts";
import {
  type Answer,
  clockAhead,
  failureOfAnswer,
  failureOfTransport,
  malformed,
} from "./answer.ts";
import { createApiKey } from "./api_key.ts";
import type { Reading } from "./sandbox.ts";

/** One request at the Lifecycle API. */
export interface Request<T> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly body?: unknown;
  /** Beside 2xx, statuses that the caller has an answer to. */
  readonly also?: readonly number[];
  readonly timeoutMs: number;
  /** Parts of the body that nobody may read in what the answer says. */
  readonly secrets?: readonly string[];
  /** What a whole answer of such a status says; throws a {@link SandboxError} for what says nothing. */
  read(answer: Answer, reading: Reading): T;
}

/** HTTP to one server, with its API key. */
export interface Transport extends Disposable {
  /**
   * What the request reads from a whole answer of status 200-299, or one of `also`. Rejects with a
   * {@link SandboxError} for any other outcome, with the signal's reason when it aborts.
   */
  exchange<T>(request: Request<T>, signal: AbortSignal): Promise<T>;
}

/** What {@link createTransport} needs. */
export interface TransportOptions {
  /** `OPENSANDBOX_API`: the server's base URL, with or without `/v1`. */
  readonly url: string;
  /** `OPENSANDBOX_API_KEY`. Sent to this server's `/v1` and nowhere else, redirects included. */
  readonly apiKey: Secret;
  /** Reads the key again after it was refused; a request is repeated once with another one. */
  readonly readKey?: () => Promise<Secret>;
  readonly clock: Clock;
  /** Called right before anything but a GET leaves; what it throws is passed on, and nothing sent. */
  before?(): void;
  /** Told how each request ended; null = the server did its work, if only by refusing. */
  onOutcome?(error: SandboxError | null): void;
}

const IDLE_MS = 20_000;
/** A page of a hundred sandboxes is some 50 KiB. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

/**
 * Makes a {@link Transport}; opens no connection before the first request. Throws a `TypeError` for a
 * key that no header can carry: the platform's own error would show it.
 */
export function createTransport(options: TransportOptions): Transport {
  const { clock, onOutcome } = options;
  const apiKey = createApiKey(options.apiKey, options.readKey);
  const base = `${options.url.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
  // With HTTP/2 one silent connection would hold up every call. One that is idle is closed before the
  // server does it (after 30 s unless set otherwise), or something on the way drops it without a word.
  const shared = Deno.createHttpClient({
    http2: false,
    poolIdleTimeout: IDLE_MS,
    poolMaxIdlePerHost: 8,
  });
  // What may not be repeated never meets a connection that is dead.
  const fresh = Deno.createHttpClient({ http2: false, poolMaxIdlePerHost: 0 });
  const closing = new AbortController();

  const send = async (
    { method, path, body }: Request<unknown>,
    key: Secret,
    signal: AbortSignal,
  ): Promise<Answer> => {
    const response = await fetch(base + path, {
      method,
      headers: {
        "open-sandbox-api-key": key.reveal(),
        accept: "application/json",
        ...body === undefined ? {} : { "content-type": "application/json" },
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal,
      client: method === "POST" ? fresh : shared,
      redirect: "manual", // Elsewhere nobody may see the key.
    });
    const bytes = await readAtMost(response.body ?? [], MAX_ANSWER_BYTES);
    if (bytes === undefined) throw malformed(`longer than ${MAX_ANSWER_BYTES / 2 ** 20} MiB`);
    const text = new TextDecoder().decode(bytes);
    return { status: response.status, headers: response.headers, text };
  };

  /** A server, or a proxy on the way, may quote the request in words. Data stays as it is. */
  const hiding = ({ secrets = [] }: Request<unknown>) => (text: string) =>
    secrets.reduce((plain, secret) => plain.replaceAll(secret, "[secret]"), apiKey.hide(text));

  const tried = async (
    request: Request<unknown>,
    key: Secret,
    signal: AbortSignal,
  ): Promise<Answer> => {
    using deadline = clock.timeout(request.timeoutMs);
    const stop = AbortSignal.any([signal, closing.signal, deadline.signal]);
    try {
      return await send(request, key, stop);
    } catch (error) {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      if (error instanceof SandboxError) throw error;
      if (!deadline.signal.aborted) throw failureOfTransport(error, hiding(request));
      const message = `no answer within ${request.timeoutMs / 1000} s`;
      throw new SandboxError("unknown_outcome", message);
    }
  };

  /** A key that is refused may have been replaced since it was read. */
  const withKey = async (request: Request<unknown>, signal: AbortSignal): Promise<Answer> => {
    const key = apiKey.current();
    const answer = await tried(request, key, signal);
    if (answer.status !== 401 || !await apiKey.renew(key)) return answer;
    if (request.method !== "GET") options.before?.();
    return await tried(request, apiKey.current(), signal);
  };

  return {
    async exchange<T>(request: Request<T>, signal: AbortSignal): Promise<T> {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      if (request.method !== "GET") options.before?.();
      try {
        const answer = await withKey(request, signal);
        const { status } = answer;
        const now = clock.now();
        const hide = hiding(request);
        const fine = (status >= 200 && status < 300) || request.also?.includes(status) === true;
        if (!fine) throw failureOfAnswer(answer, { now, hide });
        const said = request.read(answer, { aheadMs: clockAhead(answer.headers, now), hide });
        onOutcome?.(null);
        return said;
      } catch (error) {
        if (error instanceof SandboxError) {
          onOutcome?.(isTrouble(error, request.method) ? error : null);
        }
        throw error;
      }
    },
    [Symbol.dispose]() {
      closing.abort(new DOMException("The OpenSandbox client is closed", "AbortError"));
      shared.close();
      fresh.close();
    },
  };
}

/** The server is away, in trouble, another one, or does not know us; anything else is an answer. */
function isTrouble({ code }: SandboxError, method: string): boolean {
  switch (code) {
    case "unreachable":
    case "unknown_outcome":
    case "unauthorized":
    case "forbidden":
    case "throttled":
      return true;
    case "invalid": // There is nothing wrong in what we read.
      return method === "GET";
    case "pool_full":
    case "pool_missing":
    case "quota":
    case "start_failed":
    case "start_timeout":
      return false;
    default:
      return code satisfies never;
  }
}
