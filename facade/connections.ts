import { constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { NodeRequest, NodeResponse } from "../clients/connect/node_handler.ts";
import { spiffeIdOf } from "../clients/spiffe/peer.ts";
import { onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";

/** The open connections, bounded for each SPIFFE ID: one job must not use up our file descriptors. */
export interface Connections {
  /** Takes a connection that TLS has verified; one over the bound is closed at once. */
  add(socket: TLSSocket): void;
  readonly size: number;
  /** Closes all. */
  destroy(): void;
}

/**
 * Of one SPIFFE ID. The executors of one matrix share theirs, and each gate keeps a few connections:
 * the bound is far above that, and far below what a process may open.
 */
const MAX_CONNECTIONS = 4_096;

/** Makes an empty {@link Connections} for peers of one trust domain. */
export function createConnections(
  options: { readonly trustDomain: string; readonly most?: number },
): Connections {
  const { trustDomain, most = MAX_CONNECTIONS } = options;
  const open = new Set<TLSSocket>();
  const counts = new Map<string, number>();
  return {
    add(socket) {
      const key = nameOf(socket, trustDomain);
      const count = counts.get(key) ?? 0;
      if (count >= most) {
        socket.destroy();
        return;
      }
      open.add(socket);
      counts.set(key, count + 1);
      socket.once("close", () => {
        open.delete(socket);
        const left = (counts.get(key) ?? 1) - 1;
        if (left === 0) counts.delete(key);
        else counts.set(key, left);
      });
    },
    get size() {
      return open.size;
    },
    destroy() {
      for (const socket of open) socket.destroy();
    },
  };
}

/** All without an acceptable name are one peer. */
function nameOf(socket: TLSSocket, trustDomain: string): string {
  const raw: unknown = socket.getPeerCertificate()?.raw;
  const peer = spiffeIdOf(raw instanceof Uint8Array ? raw : undefined, trustDomain);
  return peer.kind === "known" ? peer.spiffeId : "";
}

/**
 * Ends a request whose body has not come after `ms`: it would hold its place, and what was read of
 * it, for as long as its sender likes.
 */
export function boundBody(
  request: NodeRequest,
  response: NodeResponse,
  { clock, ms }: { readonly clock: Clock; readonly ms: number },
): void {
  const limit = clock.timeout(ms);
  const done = () => limit[Symbol.dispose]();
  request.once("end", done);
  response.once("finish", done);
  response.once("close", done);
  onAbort(limit.signal, () => {
    if ("stream" in request) request.stream.close(constants.NGHTTP2_CANCEL);
    else request.destroy();
  });
}
