import type { Clock } from "../../lib/clock.ts";
import { isObject } from "../../lib/json_object.ts";
import type { Secret } from "../../lib/secret.ts";

/** An answer of the API. */
export interface ApiAnswer {
  readonly status: number;
  /** JSON; null when there was none. */
  readonly body: unknown;
}

/** The JSON API, as this tool speaks it. */
export interface ApiClient {
  /** Reads `/api/v1<path>`; rejects with the reason of `within` when that aborts first. */
  get(path: string, within?: AbortSignal): Promise<ApiAnswer>;
  /** Takes an action: sent again after a lost connection, with the same key, so that it is taken once. */
  post(
    path: string,
    body: Readonly<Record<string, unknown>>,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiAnswer>;
}

/** The dashboard cannot be reached, or is none. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

const TRIES = 4;
const FIRST_WAIT_MS = 250;
const PATIENCE_MS = 20_000;

type Sending = RequestInit & { readonly signal: AbortSignal };

/** Makes an {@link ApiClient}. Throws {@link UnreachableError} when nobody answers in a few tries. */
export function createApiClient(options: {
  /** Base URL of the dashboard. */
  readonly url: string;
  readonly token: Secret | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly fetch?: typeof globalThis.fetch;
}): ApiClient {
  const { url, token, clock, signal } = options;
  const ask = options.fetch ?? globalThis.fetch;

  const once = async (path: string, init: Sending): Promise<ApiAnswer> => {
    using patience = clock.timeout(PATIENCE_MS);
    const headers = new Headers(init.headers);
    headers.set("accept", "application/json");
    if (token !== null) headers.set("authorization", `Bearer ${token.reveal()}`);
    const response = await ask(`${url}/api/v1${path}`, {
      ...init,
      headers,
      // A token must not follow to another host.
      redirect: "error",
      signal: AbortSignal.any([init.signal, patience.signal]),
    });
    const text = await response.text();
    const body = parse(text);
    if (body === undefined) {
      throw new UnreachableError(
        `Ask "${url}": it answered ${response.status} and no JSON; set ADMIN_URL to the dashboard`,
      );
    }
    return { status: response.status, body };
  };

  const send = async (path: string, init: Sending): Promise<ApiAnswer> => {
    for (let attempt = 1;; attempt++) {
      try {
        const answer = await once(path, init);
        if (answer.status !== 503 || attempt >= TRIES) return answer;
      } catch (error) {
        init.signal.throwIfAborted();
        if (error instanceof UnreachableError) throw error;
        if (attempt >= TRIES) {
          const why = error instanceof Error ? error.message : String(error);
          throw new UnreachableError(`Ask "${url}": ${why}; set ADMIN_URL to the dashboard`);
        }
      }
      await clock.sleep(FIRST_WAIT_MS * 2 ** (attempt - 1), init.signal);
    }
  };

  return {
    get: (path, within = signal) =>
      send(path, { method: "GET", signal: AbortSignal.any([signal, within]) }),
    post: (path, body, headers) =>
      send(path, {
        method: "POST",
        signal,
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
  };
}

/** What went wrong, in the API's own words. */
export function detailOf({ status, body }: ApiAnswer): string {
  const detail = isObject(body) && typeof body.detail === "string"
    ? body.detail
    : "no reason given";
  return `${detail} (${status})`;
}

function parse(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
