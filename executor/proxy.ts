import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Buffer } from "node:buffer";
import type { AddressInfo } from "node:net";
import { readAtMost } from "../lib/bytes.ts";
import type { Logger } from "../lib/logger.ts";
import type { GiteaRoute } from "./gitea_route.ts";
import { createOrigin, type Origin } from "./origin.ts";
import type { RunnerAnswer } from "./runner_answer.ts";
import { MAX_CALL_BYTES, type RunnerService } from "./runner_service.ts";
import { openTlsFront, type TlsFront } from "./tls_front.ts";
import { openTunnel } from "./tunnel.ts";

/** A forward proxy on loopback for the runner process alone. */
export interface GateProxy extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`, for the runner's HTTP_PROXY or HTTPS_PROXY. */
  readonly url: string;
}

/** What the proxy works with. */
export interface GateProxyDeps {
  readonly service: RunnerService;
  readonly route: GiteaRoute;
  readonly logger: Logger;
  /** For an https Gitea: the certificate the gate shows the runner in its place. */
  readonly certificate?: { readonly certificatePem: string; readonly privateKeyPem: string };
  /** The proxy that the container itself must use for a `host:port`; undefined for none. */
  readonly upstreamProxy?: (authority: string) => URL | undefined;
  /** Ends calls that are held. */
  readonly signal: AbortSignal;
}

/**
 * Listens on a random loopback port.
 *
 *   http   absolute-form request --+-- RunnerService, Ping of Gitea --> service (then the facade)
 *   https  CONNECT Gitea --> TLS --+-- everything else -------------> origin, untouched
 *          CONNECT other ----------------------------------------> tunnel, blind
 */
export async function openGateProxy(deps: GateProxyDeps): Promise<GateProxy> {
  const { logger } = deps;
  await using stack = new AsyncDisposableStack();
  const origin = stack.use(createOrigin());
  const front = deps.certificate === undefined
    ? undefined
    : stack.use(openTlsFront({ ...deps, certificate: deps.certificate }));
  const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 });
  const sockets = new Set<Duplex>();
  server.on("request", (request, response) => {
    handle({ ...deps, origin }, request, response).catch((error) => {
      if (!deps.signal.aborted) logger.warn("proxy request failed", { error });
      response.destroy();
    });
  });
  server.on("connect", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    tunnel(deps, front, { authority: request.url ?? "", socket, head });
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  stack.defer(async () => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const owned = stack.move();
  const { port } = addressOf(server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function handle(
  deps: GateProxyDeps & { readonly origin: Origin },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const target = request.url ?? "";
  if (!/^http:\/\//i.test(target)) {
    return write(response, plain(400, "this is a proxy: send absolute-form requests"));
  }
  const to = deps.route.route(request.method ?? "", target);
  if (to.kind === "origin") return deps.origin.pass(request, response);
  const header = (name: string) => {
    const value = request.headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
  const refusal = deps.service.refuse({ method: to.method, header });
  if (refusal !== undefined) {
    response.setHeader("connection", "close");
    return write(response, refusal);
  }
  const body = await readAtMost(request, MAX_CALL_BYTES);
  if (body === undefined) return write(response, plain(413, "the call is too large"));
  write(response, await deps.service.answer({ method: to.method, header, body }, deps.signal));
}

function tunnel(
  deps: GateProxyDeps,
  front: TlsFront | undefined,
  to: { readonly authority: string; readonly socket: Duplex; readonly head: Buffer },
): void {
  const toGitea = front !== undefined && deps.route.isGitea(to.authority);
  const upstream = toGitea ? undefined : deps.upstreamProxy?.(to.authority);
  openTunnel(to, {
    target: toGitea ? `127.0.0.1:${front.port}` : to.authority,
    logger: deps.logger,
    ...(upstream === undefined ? {} : { upstream }),
  });
}

function write(response: ServerResponse, answer: RunnerAnswer): void {
  response.writeHead(answer.status, { ...answer.headers, "content-length": answer.body.length });
  response.end(Buffer.from(answer.body));
}

function plain(status: number, text: string): RunnerAnswer {
  const body = new TextEncoder().encode(`${text}\n`);
  return { status, headers: { "content-type": "text/plain" }, body };
}

function addressOf(address: string | AddressInfo | null): AddressInfo {
  if (address === null || typeof address === "string") throw new Error("Listen: no port");
  return address;
}
