import { TLSSocket } from "node:tls";
import type { NodeRequest, NodeResponse } from "../clients/connect/node_handler.ts";
import type { Clock } from "../lib/clock.ts";
import type { Authenticator, Caller, Expired, Refused } from "./caller.ts";
import type { PeerLimits } from "./limits.ts";

/** How a request was judged before anything of its body was read. */
export type Access =
  /** A peer with an SVID of the trust domain; `caller` tells whether it has a capability too. */
  | {
    readonly kind: "peer";
    readonly caller: { readonly kind: "caller"; readonly caller: Caller } | Refused;
  }
  | Refused
  /** To be told "later": a live executor has a new SVID, and connects with it. */
  | Expired
  /** A limit was met. */
  | { readonly kind: "busy"; readonly why: string };

/** What a peer is told whose SVID has expired. */
export const EXPIRED = "the client certificate has expired: connect with a new one";

/** Reads the peer certificate (DER) of a request; undefined without one. */
export type PeerReader = (request: NodeRequest) => Uint8Array | undefined;

/**
 * The certificate that TLS has verified. An unauthorized socket, and one that claims to be
 * authorized but has no certificate (seen in TLS libraries), both read as none.
 */
export function readPeer(request: NodeRequest): Uint8Array | undefined {
  const socket: unknown = "stream" in request ? request.stream.session?.socket : request.socket;
  if (!(socket instanceof TLSSocket) || socket.authorized !== true) return undefined;
  const raw: unknown = socket.getPeerCertificate()?.raw;
  return raw instanceof Uint8Array && raw.length > 0 ? raw : undefined;
}

/** Bucket of all peers without an acceptable name. */
const NOBODY = "";

/** What {@link judgeAccess} works with. */
export interface AccessDeps {
  readonly authenticator: Authenticator;
  readonly limits: PeerLimits;
  readonly clock: Pick<Clock, "now">;
  readonly readPeer: PeerReader;
}

/**
 * Judges a request: who its peer is, whose executor it is, and whether that one may make another
 * call now. The place that it takes is given back when the response is closed.
 */
export function judgeAccess(
  request: NodeRequest,
  response: NodeResponse,
  deps: AccessDeps,
): Access {
  let certificate: Uint8Array | undefined;
  try {
    certificate = deps.readPeer(request);
  } catch {
    return { kind: "refused", why: "the peer certificate cannot be read" };
  }
  const peer = deps.authenticator.peer(certificate, deps.clock.now());
  if (peer.kind === "expired") closeAfter(request, response);
  if (peer.kind !== "peer") {
    // They share one place and one rate, so that they cannot fill our log.
    const place = deps.limits.enter(NOBODY);
    if (place.kind === "refused") return { kind: "busy", why: place.why };
    place[Symbol.dispose]();
    return peer;
  }
  const caller = deps.authenticator.caller(peer, (name) => {
    const value = request.headers[name];
    return typeof value === "string" ? value : null;
  });
  // Executors of one job key share a SPIFFE ID: their assignments tell them apart.
  const key = caller.kind === "caller" ? caller.caller.assignment : peer.spiffeId;
  const place = deps.limits.enter(key);
  if (place.kind === "refused") return { kind: "busy", why: place.why };
  const leave = () => place[Symbol.dispose]();
  response.once("close", leave);
  response.once("finish", leave);
  return { kind: "peer", caller };
}

/** The answer is the connection's last. */
function closeAfter(request: NodeRequest, response: NodeResponse): void {
  if ("stream" in request) {
    const { session } = request.stream;
    // Open streams, this one too, may end.
    response.once("close", () => session?.close());
  } else response.setHeader("connection", "close");
}
