import { request as httpsRequest } from "node:https";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Buffer } from "node:buffer";
import type { Svid } from "../clients/spiffe/svid.ts";
import { abortable } from "../lib/abortable.ts";
import { readAtMost } from "../lib/bytes.ts";
import { bareHost } from "../lib/host.ts";
import type { Secret } from "../lib/secret.ts";
import { createTlsPool, type TlsPool } from "./tls_pool.ts";

/** One POST to the facade. */
export interface FacadeRequest {
  /** Path below the facade's URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** What the facade answered, whatever the status. */
export interface FacadeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Mutual TLS to the facade, connections kept; the newest SVID is used for every new connection. */
export interface FacadeLink extends Disposable {
  /**
   * Rejects with {@link FacadeError} when there was no answer (it may be tried again), or with the
   * signal's reason.
   */
  post(request: FacadeRequest, call: { readonly signal: AbortSignal }): Promise<FacadeAnswer>;
  /**
   * Gives the present connections up for new calls, because one of them was silent: a facade that has
   * vanished without a word leaves others like it. Calls in flight stay on theirs.
   */
  suspect(): void;
}

/** No answer from the facade: not reached, not the one we must meet, or cut off. */
export class FacadeError extends Error {
  override readonly name = "FacadeError";
}

/** Whom to dial, and as whom. */
export interface FacadeLinkOptions {
  readonly url: string;
  readonly spiffeId: string;
  readonly assignment: string;
  readonly capability: Secret;
  /** 128 random bits in hex: tells two gates of one assignment apart. */
  readonly gate: string;
  /** `traceparent` for each call; none without. */
  readonly traceparent?: string | undefined;
  /** Largest answer, bytes; 64 MiB by default (a task carries its whole event). */
  readonly maxBytes?: number;
}

/** The SVID in use, as the link needs it. */
export interface SvidHolder {
  current(): Svid | null;
}

/** Opens nothing yet: the first call connects. */
export function createFacadeLink(svids: SvidHolder, options: FacadeLinkOptions): FacadeLink {
  const base = new URL(options.url);
  const prefix = base.pathname.replace(/\/+$/, "");
  const maxBytes = options.maxBytes ?? 64 * 1024 * 1024;
  const identity = {
    "x-runner-uuid": options.assignment,
    "x-runner-token": options.capability.reveal(),
    "x-gate-instance": options.gate,
    ...options.traceparent === undefined ? {} : { traceparent: options.traceparent },
  };
  let pool: TlsPool | undefined;

  const poolFor = (svid: Svid): TlsPool => {
    if (pool?.svid === svid) return pool;
    // Calls in flight end on the connections of the SVID they began with.
    pool?.retire();
    pool = createTlsPool(svid, options.spiffeId);
    return pool;
  };

  const retire = () => {
    pool?.retire();
    pool = undefined;
  };

  return {
    async post(request, { signal }) {
      signal.throwIfAborted();
      const svid = svids.current();
      if (svid === null) throw new FacadeError("Call facade: no SVID yet");
      using use = poolFor(svid).use();
      const outgoing = httpsRequest({
        agent: use.agent,
        host: bareHost(base.hostname),
        port: base.port === "" ? 443 : Number(base.port),
        method: "POST",
        path: prefix + request.path,
        headers: { ...request.headers, ...identity, "content-length": request.body.length },
      });
      return await exchange(outgoing, { body: request.body, maxBytes, signal });
    },
    suspect: retire,
    [Symbol.dispose]: retire,
  };
}

function flat(answer: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}

/** Sends the body and reads the answer; whatever ends it, nothing of it goes on. */
async function exchange(
  outgoing: ClientRequest,
  call: {
    readonly body: Uint8Array;
    readonly maxBytes: number;
    readonly signal: AbortSignal;
  },
): Promise<FacadeAnswer> {
  const { body, maxBytes, signal } = call;
  const { promise, resolve, reject } = Promise.withResolvers<FacadeAnswer>();
  outgoing.on("error", reject);
  outgoing.on("response", (answer) => {
    readAtMost(answer, maxBytes).then((read) => {
      if (read === undefined) throw new Error(`Read answer: more than ${maxBytes} bytes`);
      resolve({ status: answer.statusCode ?? 0, headers: flat(answer), body: read });
    }).catch(reject);
  });
  outgoing.end(Buffer.from(body));
  try {
    return await abortable(promise, signal);
  } catch (cause) {
    outgoing.destroy();
    signal.throwIfAborted();
    throw new FacadeError("Call facade: no answer", { cause });
  }
}
