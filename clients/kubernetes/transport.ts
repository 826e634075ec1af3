import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  type Answer,
  failureOfAnswer,
  failureOfTransport,
  isCertificateFailure,
} from "./answer.ts";
import { type ConnectionUse, createConnections } from "./connections.ts";
import type { Credentials } from "./credentials.ts";
import { createDeadline, NoAnswer } from "./deadline.ts";
import type { Failure } from "./error.ts";
import type { Material } from "./material.ts";
import { readBody, readPieces } from "./pieces.ts";

/** One request at the API server. */
export interface Request {
  readonly method: string;
  /** Absolute URL, or a path with its query. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** An answer whose body is read as it comes. Dispose it, or its connection stays in use. */
export interface OpenAnswer extends AsyncDisposable {
  /** The next piece, null at the end; rejects with the signal's reason when it aborts. */
  read(): Promise<Uint8Array | null>;
  /** Says that this connection went silent, so that new calls get new ones. */
  suspect(): void;
}

/** HTTP to one API server, with its credentials. */
export interface Transport extends Disposable {
  /** The server's base URL. */
  readonly server: string;
  /**
   * A whole answer of status 200-299. Rejects with {@link Refused} for any other outcome, with the
   * signal's reason when it aborts; {@link NoAnswer} gives the present connections up for new calls.
   */
  exchange(request: Request, signal: AbortSignal): Promise<Answer>;
  /** An answer of status 200-299 once its head is there, not later than `headMs`; rejects likewise. */
  open(request: Request, options: { signal: AbortSignal; headMs: number }): Promise<OpenAnswer>;
}

/** Why a request did not succeed; {@link KubernetesError} adds what was being done. */
export class Refused extends Error {
  override readonly name = "Refused";
  /** What is known of it. */
  readonly failure: Failure;

  constructor(failure: Failure, options?: { readonly cause?: unknown }) {
    super(failure.detail, options);
    this.failure = failure;
  }
}

/** Largest answer that is read whole: several thousand Pods. */
const MAX_ANSWER_BYTES = 64 * 2 ** 20;
/** A refusal is a short `Status`; more is a proxy's page. */
const MAX_REFUSAL_BYTES = 64 * 2 ** 10;

interface Head {
  readonly response: Response;
  readonly use: ConnectionUse;
  readonly material: Material;
}

/** Makes a {@link Transport}; opens no connection before the first request. */
export async function createTransport(
  credentials: Credentials,
  { clock, userAgent, before }: {
    readonly clock: Clock;
    readonly userAgent: string;
    /** Called right before each request that is no GET; what it throws is passed on, and nothing sent. */
    before?(): void;
  },
): Promise<Transport> {
  const connections = createConnections();
  const { server } = await credentials.current();

  /** The request as it leaves; rejects with whatever fetch said. */
  const once = async (request: Request, material: Material, signal: AbortSignal) => {
    const use = connections.use(material);
    try {
      const headers = new Headers(request.headers);
      headers.set("user-agent", userAgent);
      if (!headers.has("accept")) headers.set("accept", "application/json");
      if (material.token !== null) {
        headers.set("authorization", `Bearer ${material.token.reveal()}`);
      }
      // A server may have a path of its own, as behind Rancher.
      const url = request.url.startsWith("/") ? server + request.url : request.url;
      const response = await fetch(url, {
        method: request.method,
        headers,
        body: request.body ?? null,
        signal,
        client: use.http,
        redirect: "manual", // Elsewhere nobody may see the token.
      });
      return { response, use, material };
    } catch (error) {
      if (isLate(signal)) connections.retire(use);
      use[Symbol.dispose]();
      throw error;
    }
  };

  /** `once`, if this process may act, with its failure as {@link Refused}. */
  const tried = async (request: Request, material: Material, signal: AbortSignal) => {
    signal.throwIfAborted();
    if (request.method !== "GET") before?.();
    try {
      return await once(request, material, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new Refused(failureOfTransport(error), { cause: error });
    }
  };

  /** The head of an answer; asked for once more with what is on disk now when we were refused. */
  const ask = async (request: Request, signal: AbortSignal): Promise<Head> => {
    const material = await credentials.current();
    let head: Head | null = null;
    let failure: unknown = null;
    try {
      head = await tried(request, material, signal);
      if (head.response.status !== 401) return head;
    } catch (error) {
      if (!(error instanceof Refused) || !isCertificateFailure(error)) throw error;
      failure = error;
    }
    const renewed = await credentials.renew(material);
    if (renewed !== null) {
      await head?.response.body?.cancel().catch(() => {});
      head?.use[Symbol.dispose]();
      return await tried(request, renewed, signal);
    }
    if (head === null) throw failure;
    return head;
  };

  const readWhole = async ({ response, use }: Head, signal: AbortSignal): Promise<Answer> => {
    const { status, headers } = response;
    try {
      const maxBytes = response.ok ? MAX_ANSWER_BYTES : MAX_REFUSAL_BYTES;
      const { text, whole } = await readBody(response.body, { maxBytes, signal });
      // Of a refusal the beginning says enough.
      if (!whole && response.ok) {
        throw new Refused(malformed(`longer than ${maxBytes / 2 ** 20} MiB`));
      }
      return { status, headers, text };
    } catch (error) {
      if (isLate(signal)) connections.retire(use);
      signal.throwIfAborted();
      throw error instanceof Refused
        ? error
        : new Refused(failureOfTransport(error), { cause: error });
    } finally {
      use[Symbol.dispose]();
    }
  };

  return {
    server,
    async exchange(request, signal) {
      const head = await ask(request, signal);
      const answer = await readWhole(head, signal);
      if (!head.response.ok) throw refusal(answer, head.material);
      return answer;
    },
    async open(request, { signal, headMs }) {
      const controller = new AbortController();
      const stop = AbortSignal.any([signal, controller.signal]);
      using head = createDeadline(clock, headMs);
      const listening = onAbort(head.signal, () => controller.abort(head.signal.reason));
      try {
        const { response, use, material } = await ask(request, stop);
        if (!response.ok || response.body === null) {
          const answer = await readWhole({ response, use, material }, stop);
          throw refusal(answer, material);
        }
        const pieces = readPieces(response.body, stop);
        return {
          read: () => pieces.read(),
          suspect: () => connections.retire(use),
          async [Symbol.asyncDispose]() {
            await pieces[Symbol.asyncDispose]();
            use[Symbol.dispose]();
          },
        };
      } catch (error) {
        signal.throwIfAborted();
        throw head.signal.aborted ? new Refused(late(headMs), { cause: error }) : error;
      } finally {
        listening[Symbol.dispose]();
      }
    },
    [Symbol.dispose]: () => connections[Symbol.dispose](),
  };
}

/** What a missed deadline is. */
export function late(ms: number): Failure {
  return {
    status: 0,
    reason: "Deadline",
    detail: `no answer within ${ms / 1000} s`,
    retryAfterMs: null,
  };
}

/** An answer that no API server gives. */
export function malformed(what: string): Failure {
  const detail = `the answer is not one of an API server (${what})`;
  return { status: 0, reason: "Malformed", detail, retryAfterMs: null };
}

/** True when nobody answered in time, by our own deadline. */
function isLate({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof NoAnswer;
}

/** A server, or a proxy on the way, may quote the request in its answer. */
function refusal(answer: Answer, { token }: Material): Refused {
  const secret = token?.reveal() ?? "";
  const text = secret === "" ? answer.text : answer.text.replaceAll(secret, "[secret]");
  return new Refused(failureOfAnswer({ ...answer, text }));
}
