import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { Buffer } from "node:buffer";
import { createHoldPoints, type HoldPoint } from "./hold_proxy_point.ts";

/** One call of RunnerService, or any other request, on its way. */
export interface ProxiedCall {
  /** Last part of the path: `FetchTask`, `UpdateLog`, ... */
  readonly name: string;
  readonly request: Uint8Array;
  /** Null while it has not been answered. */
  readonly answer: { readonly status: number; readonly body: Uint8Array } | null;
}

/** An HTTP proxy in front of one server that can hold, lose or change chosen calls. */
export interface HoldProxy extends AsyncDisposable {
  readonly url: string;
  /** Holds what matches: a call without an answer on its way there, one with an answer on its way back. */
  hold(match: (call: ProxiedCall) => boolean): HoldPoint<ProxiedCall>;
  /** Changes the body of each request before it goes on, until undone; null leaves it as it is. */
  rewrite(change: (call: ProxiedCall) => Uint8Array | null): Disposable;
  /** How many callers wait for an answer now. */
  readonly waiting: number;
  /** While true every connection is broken off without an answer. */
  down: boolean;
}

/** Of one connection or of a body as it was (RFC 9110, 7.6.1); and answers shall come uncompressed. */
const NOT_PASSED = [
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "transfer-encoding",
  "accept-encoding",
];

/**
 * Listens on loopback in front of `upstream`. Bodies are passed whole. What is lost shows as a broken
 * connection; a request whose caller has gone while it was held never reaches the server.
 */
export async function startHoldProxy(
  upstream: { readonly hostname: string; readonly port: number },
): Promise<HoldProxy> {
  const points = createHoldPoints<ProxiedCall>();
  const changes = new Set<(call: ProxiedCall) => Uint8Array | null>();
  const state = { down: false, waiting: 0 };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (state.down) return void incoming.socket.destroy();
    const caller = { gone: false };
    state.waiting++;
    outgoing.once("close", () => {
      state.waiting--;
      caller.gone = true;
    });
    const asked: ProxiedCall = {
      name: nameOf(incoming.url ?? ""),
      request: await readAll(incoming),
      answer: null,
    };
    if (await points.pass(asked) === "drop") return void incoming.socket.destroy();
    if (caller.gone || state.down) return void incoming.socket.destroy();
    let body = asked.request;
    for (const change of changes) body = change({ ...asked, request: body }) ?? body;
    const answer = await forward(upstream, { incoming, outgoing, body });
    const answered = { ...asked, answer: { status: answer.status, body: answer.body } };
    if (await points.pass(answered) === "drop") return void incoming.socket.destroy();
    if (caller.gone || state.down) return void incoming.socket.destroy();
    outgoing.writeHead(answer.status, answer.headers);
    outgoing.end(answer.body);
  };

  const server = createServer((incoming, outgoing) => {
    // An upstream that is away looks like one to the caller.
    serve(incoming, outgoing).catch(() => incoming.socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("Start the holding proxy: the server has no port");
  }
  return {
    url: `http://127.0.0.1:${address.port}`,
    hold: (match) => points.hold(match),
    rewrite(change) {
      changes.add(change);
      return { [Symbol.dispose]: () => void changes.delete(change) };
    },
    get waiting() {
      return state.waiting;
    },
    get down() {
      return state.down;
    },
    set down(down) {
      state.down = down;
      if (down) server.closeAllConnections();
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function nameOf(url: string): string {
  const path = url.split("?", 1)[0] ?? "";
  return path.slice(path.lastIndexOf("/") + 1);
}

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of stream) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[]>;
  readonly body: Uint8Array;
}

function forward(
  upstream: { readonly hostname: string; readonly port: number },
  { incoming, outgoing: back, body }: {
    readonly incoming: IncomingMessage;
    readonly outgoing: ServerResponse;
    readonly body: Uint8Array;
  },
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const headers = passed(incoming.headers);
  headers["content-length"] = String(body.byteLength);
  const outgoing = request({
    host: upstream.hostname,
    port: upstream.port,
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    headers,
    agent: false,
  }, (reply) => {
    readAll(reply).then(
      (body) => resolve({ status: reply.statusCode ?? 502, headers: passed(reply.headers), body }),
      reject,
    );
  });
  outgoing.on("error", reject);
  // The server sees its caller go, as it would without us.
  back.on("close", () => outgoing.destroy());
  outgoing.end(body);
  return promise;
}

function passed(headers: IncomingMessage["headers"]): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(([name, value]) =>
    value !== undefined && !NOT_PASSED.includes(name)
  );
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}
