import { Agent, request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { Buffer } from "node:buffer";
import { spiffeIdOf } from "../clients/spiffe/peer.ts";
import { type Svid, trustDomainOf } from "../clients/spiffe/svid.ts";
import { readAtMost } from "../lib/bytes.ts";
import { bareHost } from "../lib/host.ts";
import type { Secret } from "../lib/secret.ts";

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
  };
  let pool: Pool | undefined;

  const poolFor = (svid: Svid): Pool => {
    if (pool?.svid === svid) return pool;
    // Calls in flight end on the connections of the SVID they began with.
    pool?.retire();
    pool = createPool(svid, options.spiffeId);
    return pool;
  };

  return {
    post(request, { signal }) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const svid = svids.current();
        if (svid === null) return reject(new FacadeError("Call facade: no SVID yet"));
        const use = poolFor(svid).use();
        const outgoing = httpsRequest({
          agent: use.agent,
          host: bareHost(base.hostname),
          port: base.port === "" ? 443 : Number(base.port),
          method: "POST",
          path: prefix + request.path,
          headers: { ...request.headers, ...identity, "content-length": request.body.length },
        });
        const settle = () => {
          signal.removeEventListener("abort", onAbort);
          use[Symbol.dispose]();
        };
        const fail = (error: unknown) => {
          settle();
          outgoing.destroy();
          reject(
            signal.aborted ? signal.reason : new FacadeError("Call facade: no answer", {
              cause: error,
            }),
          );
        };
        const onAbort = () => fail(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        outgoing.on("error", fail);
        outgoing.on("response", (answer) => {
          readAtMost(answer, maxBytes).then((body) => {
            if (body === undefined) throw new Error(`Read answer: more than ${maxBytes} bytes`);
            settle();
            resolve({ status: answer.statusCode ?? 0, headers: flat(answer), body });
          }).catch(fail);
        });
        outgoing.end(Buffer.from(request.body));
      });
    },
    [Symbol.dispose]() {
      pool?.retire();
      pool = undefined;
    },
  };
}

interface Pool {
  readonly svid: Svid;
  use(): { readonly agent: Agent } & Disposable;
  retire(): void;
}

/** Connections made with one SVID; closed when it is retired and no call is in flight. */
function createPool(svid: Svid, facadeSpiffeId: string): Pool {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 8,
    cert: svid.certificatePem,
    key: svid.privateKeyPem,
    ca: svid.bundlePem,
    minVersion: "TLSv1.3",
    ALPNProtocols: ["http/1.1"],
    checkServerIdentity: (_host, certificate) => {
      const peer = spiffeIdOf(certificate.raw, trustDomainOf(facadeSpiffeId));
      if (peer.kind === "known" && peer.spiffeId === facadeSpiffeId) return undefined;
      const met = peer.kind === "known" ? `"${peer.spiffeId}"` : peer.why;
      return new Error(`Check facade: met ${met}, wanted "${facadeSpiffeId}"`);
    },
  });
  let users = 0;
  let retired = false;
  const closeIfIdle = () => {
    if (retired && users === 0) agent.destroy();
  };
  return {
    svid,
    use() {
      users++;
      let used = true;
      return {
        agent,
        [Symbol.dispose]() {
          if (!used) return;
          used = false;
          users--;
          closeIfIdle();
        },
      };
    },
    retire() {
      retired = true;
      closeIfIdle();
    },
  };
}

function flat(answer: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return headers;
}
