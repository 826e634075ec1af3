import { SandboxError } from "../../backends/vm/sandboxes.ts";
import type { Clock } from "../../lib/clock.ts";
import { readAtMost } from "../../lib/bytes.ts";
import type { Secret } from "../../lib/secret.ts";
import { type Answer, failureOfAnswer, failureOfTransport, malformed } from "./answer.ts";

/** One request at the Lifecycle API. */
export interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/v1`, with its query. */
  readonly path: string;
  readonly body?: unknown;
  /** Beside 2xx, statuses that the caller has an answer to. */
  readonly also?: readonly number[];
  readonly timeoutMs: number;
}

/** HTTP to one server, with its API key. */
export interface Transport extends Disposable {
  /**
   * A whole answer of status 200-299, or one of `also`. Rejects with a {@link SandboxError} for any other
   * outcome, with the signal's reason when it aborts.
   */
  exchange(request: Request, signal: AbortSignal): Promise<Answer>;
}

/** What {@link createTransport} needs. */
export interface TransportOptions {
  /** `OPENSANDBOX_API`: the server's base URL, with or without `/v1`. */
  readonly url: string;
  /** `OPENSANDBOX_API_KEY`. Sent to this server's `/v1` and nowhere else, redirects included. */
  readonly apiKey: Secret;
  readonly clock: Clock;
  /** Called right before anything but a GET leaves; what it throws is passed on, and nothing sent. */
  before?(): void;
  /** Told how each request ended; null = the server did its work, if only by refusing. */
  onOutcome?(error: SandboxError | null): void;
}

/** A page of a hundred sandboxes is some 50 KiB. */
const MAX_ANSWER_BYTES = 16 * 2 ** 20;

/** Makes a {@link Transport}; opens no connection before the first request. */
export function createTransport(options: TransportOptions): Transport {
  const { clock, apiKey, onOutcome } = options;
  const base = `${options.url.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1`;
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 8 });
  const closing = new AbortController();

  const send = async (request: Request, signal: AbortSignal): Promise<Answer> => {
    const response = await fetch(base + request.path, {
      method: request.method,
      headers: {
        "open-sandbox-api-key": apiKey.reveal(),
        accept: "application/json",
        ...request.body === undefined ? {} : { "content-type": "application/json" },
      },
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal,
      client,
      redirect: "manual", // Elsewhere nobody may see the key.
    });
    const bytes = await readAtMost(response.body ?? [], MAX_ANSWER_BYTES);
    if (bytes === undefined) throw malformed(`longer than ${MAX_ANSWER_BYTES / 2 ** 20} MiB`);
    const text = new TextDecoder().decode(bytes);
    return { status: response.status, headers: response.headers, text: withoutKey(text) };
  };

  /** A server, or a proxy on the way, may quote the request in its answer. */
  const withoutKey = (text: string) => text.replaceAll(apiKey.reveal(), "[secret]");

  const tried = async (request: Request, signal: AbortSignal): Promise<Answer> => {
    using deadline = clock.timeout(request.timeoutMs);
    const stop = AbortSignal.any([signal, closing.signal, deadline.signal]);
    try {
      return await send(request, stop);
    } catch (error) {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      if (error instanceof SandboxError) throw error;
      if (!deadline.signal.aborted) throw failureOfTransport(error);
      const message = `no answer within ${request.timeoutMs / 1000} s`;
      throw new SandboxError("unknown_outcome", message);
    }
  };

  return {
    async exchange(request, signal) {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      if (request.method !== "GET") options.before?.();
      try {
        const answer = await tried(request, signal);
        const { status } = answer;
        const fine = (status >= 200 && status < 300) || request.also?.includes(status) === true;
        if (!fine) throw failureOfAnswer(answer);
        onOutcome?.(null);
        return answer;
      } catch (error) {
        if (error instanceof SandboxError) onOutcome?.(isTrouble(error) ? error : null);
        throw error;
      }
    },
    [Symbol.dispose]() {
      closing.abort(new DOMException("The OpenSandbox client is closed", "AbortError"));
      client.close();
    },
  };
}

/** The server is away, in trouble, or does not know us; anything else is an answer. */
function isTrouble({ code }: SandboxError): boolean {
  return code === "unreachable" || code === "unknown_outcome" || code === "unauthorized";
}
