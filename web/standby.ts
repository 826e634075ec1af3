import { abortable, onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";

/** The leader, as far as reads are concerned. */
export interface Upstream {
  readonly holder: string;
  /** Its `ADMIN_ADVERTISE`: `host:port`, or an http or https URL. */
  readonly address: string;
}

/** Passes reads of a standby on to the leader, so that every replica shows the same. */
export interface Standby {
  /**
   * The leader's answer; undefined when this process must answer itself: it leads, nobody is known to
   * lead, the leader does not answer, or another replica has passed the request on already. Never
   * rejects. `request` has passed the guard.
   */
  forward(request: Request): Promise<Response | undefined>;
}

/** Set on what is passed on, with the name of the replica; such a request is never passed on again. */
export const FORWARDED_BY = "gdr-forwarded-by";

/** A leader that does not answer in this time is taken for away. */
const HEAD_MS = 3_000;
/** The event stream speaks every five seconds. */
const IDLE_MS = 30_000;
/** After a failure the leader is left alone for so long: no page waits for it meanwhile. */
const REST_MS = 2_000;
/** Answers of the leader that are under way at a time. */
const MAX_OPEN = 256;
/** What this replica alone can tell of itself. */
const OWN_PATHS = new Set(["/healthz", "/readyz", "/metrics"]);
/** What a reader may say; `Host`, `Origin` and the like are the leader's own affair with us. */
const PASSED_ON = [
  "accept",
  "accept-language",
  "authorization",
  "cookie",
  "if-none-match",
  "last-event-id",
] as const;
/** Of one connection, or no longer true: `fetch` has unpacked the body. */
const NOT_PASSED_BACK = [
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "content-encoding",
] as const;

/** Makes {@link Standby}. `leader` gives null while this process leads or nobody is known to. */
export function createStandby(deps: {
  leader(): Upstream | null;
  /** Name of this process. */
  readonly self: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly fetch?: typeof fetch;
}): Standby {
  const { clock, self } = deps;
  const logger = deps.logger.child({ component: "standby" });
  const ask = deps.fetch ?? globalThis.fetch;
  let open = 0;
  let restsUntil = -Infinity;
  let failing: string | null = null;

  const failed = (address: string, error: unknown) => {
    restsUntil = clock.monotonic() + REST_MS;
    if (failing === address) return;
    failing = address;
    logger.warn("the leader's pages cannot be read, this one answers itself", { address, error });
  };

  const request = async (url: URL, from: Request, end: AbortSignal): Promise<Response> => {
    using patience = clock.timeout(HEAD_MS);
    const head = new AbortController();
    const listening = onAbort(patience.signal, () => head.abort(patience.signal.reason));
    try {
      const response = await ask(url, {
        method: from.method,
        headers: headersFor(from, self),
        redirect: "manual",
        signal: AbortSignal.any([end, head.signal]),
      });
      // It is reached by its own name, or it is somebody else.
      if (response.status !== 421) return response;
      await response.body?.cancel();
      throw new Error("the leader does not answer to its ADMIN_ADVERTISE");
    } finally {
      // Its body may take as long as it likes.
      listening[Symbol.dispose]();
    }
  };

  return {
    async forward(from) {
      if (from.method !== "GET" && from.method !== "HEAD") return undefined;
      if (from.headers.has(FORWARDED_BY) || open >= MAX_OPEN) return undefined;
      const { pathname, search } = new URL(from.url);
      if (OWN_PATHS.has(pathname) || clock.monotonic() < restsUntil) return undefined;
      const upstream = deps.leader();
      const base = upstream === null ? undefined : baseOf(upstream.address);
      if (upstream === null || base === undefined) return undefined;
      const end = new AbortController();
      open++;
      const close = once(() => {
        open--;
        end.abort();
      });
      try {
        const answer = await request(new URL(`${base}${pathname}${search}`), from, end.signal);
        failing = null;
        const same = () => deps.leader()?.address === upstream.address;
        return passBack(answer, { close, same, clock, holder: upstream.holder });
      } catch (error) {
        close();
        failed(upstream.address, error);
        return undefined;
      }
    },
  };
}

function headersFor(from: Request, self: string): Headers {
  const headers = new Headers({ [FORWARDED_BY]: self, "accept-encoding": "identity" });
  for (const name of PASSED_ON) {
    const value = from.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return headers;
}

function passBack(
  answer: Response,
  options: {
    readonly holder: string;
    readonly clock: Clock;
    close(): void;
    same(): boolean;
  },
): Response {
  const headers = new Headers(answer.headers);
  for (const name of NOT_PASSED_BACK) headers.delete(name);
  headers.set("gdr-answered-by", options.holder);
  const { status } = answer;
  if (answer.body === null) {
    options.close();
    return new Response(null, { status, headers });
  }
  return new Response(follow(answer.body, options), { status, headers });
}

/** The body as it comes; ends when it is silent for too long, or when another leads: readers come back. */
function follow(
  body: ReadableStream<Uint8Array>,
  { close, same, clock }: { readonly clock: Clock; close(): void; same(): boolean },
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const stop = async () => {
    close();
    await reader.cancel().catch(() => {});
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      using idle = clock.timeout(IDLE_MS);
      try {
        const { done, value } = await abortable(reader.read(), idle.signal);
        if (!done && same()) return controller.enqueue(value);
      } catch {
        // The leader has gone; what came is what there is.
      }
      await stop();
      controller.close();
    },
    cancel: stop,
  }, { highWaterMark: 0 });
}

function baseOf(address: string): string | undefined {
  const url = /^https?:\/\//i.test(address) ? address : `http://${address}`;
  return URL.canParse(url) ? url.replace(/\/+$/, "") : undefined;
}

function once(run: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
}
