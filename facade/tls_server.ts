import http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import type { NodeRequest, NodeResponse } from "../clients/connect/node_handler.ts";
import type { Svid } from "../clients/spiffe/workload_api.ts";
import { listenHost } from "../lib/every_address.ts";
import { deferDestroy } from "../lib/http2_session.ts";
import type { Logger } from "../lib/logger.ts";
import { createConnections } from "./connections.ts";

/**
 * HTTP/2 and HTTP/1.1 over TLS 1.3, for clients with a certificate of our trust domain. Disposing
 * closes every connection.
 */
export interface TlsServer extends AsyncDisposable {
  /** On every address without a host name. Resolves to the port. Rejects with an `Error` that names the setting when it cannot listen. */
  listen(at: { readonly hostname: string; readonly port: number }): Promise<number>;
  /** Serves new connections with this SVID and its bundle; open ones stay. */
  rotate(svid: Svid): void;
  /** Open ones. */
  readonly connections: number;
}

const STREAMS_PER_CONNECTION = 32;
const HANDSHAKE_MS = 10_000;

/** Makes a {@link TlsServer} that does not listen yet. */
export function createTlsServer(
  answer: (request: NodeRequest, response: NodeResponse) => void,
  options: {
    readonly svid: Svid;
    readonly trustDomain: string;
    readonly logger: Logger;
    /** Of one SPIFFE ID; a bound of our own by default. */
    readonly maxConnections?: number;
  },
): TlsServer {
  const { logger, trustDomain, maxConnections } = options;
  const connections = createConnections({
    trustDomain,
    ...(maxConnections === undefined ? {} : { most: maxConnections }),
  });
  const server = http2.createSecureServer({
    allowHTTP1: true,
    minVersion: "TLSv1.3",
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: HANDSHAKE_MS,
    settings: { maxConcurrentStreams: STREAMS_PER_CONNECTION },
    ...tlsOf(options.svid),
  }, answer);
  // Those without a handshake, too: the server's end waits for each.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("secureConnection", (socket) => {
    // A client that vanishes must never become an uncaught error.
    socket.on("error", (error: unknown) => logger.debug("connection failed", { error }));
    connections.add(socket);
  });
  server.on("session", deferDestroy);
  server.on("tlsClientError", (error) => logger.debug("TLS refused", { error }));
  server.on("sessionError", (error) => logger.debug("HTTP/2 session failed", { error }));
  return {
    listen: (at) => listen(server, at),
    rotate: (svid) => server.setSecureContext(tlsOf(svid)),
    get connections() {
      return connections.size;
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        connections.destroy();
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function listen(
  server: http2.Http2SecureServer,
  { hostname, port }: { readonly hostname: string; readonly port: number },
): Promise<number> {
  const host = listenHost(hostname);
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      const message =
        `Listen on "${host}:${port}" for executors: ${cause.message}: set RUNNER_FACADE_LISTEN`;
      reject(new Error(message, { cause }));
    });
    server.listen(port, host, () => {
      const address: AddressInfo | string | null = server.address();
      if (typeof address === "object" && address !== null) resolve(address.port);
      else reject(new Error("Listen for executors: the server has no port"));
    });
  });
}

function tlsOf(svid: Svid) {
  return { cert: svid.certificatePem, key: svid.privateKeyPem, ca: svid.bundlePem };
}
