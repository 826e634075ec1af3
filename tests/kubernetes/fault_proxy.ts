import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { onAbort } from "../../lib/abortable.ts";

/** One request on its way to the API server. */
export interface ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly watch: boolean;
}

/** What is done with a request in place of passing it on. */
export type Treatment =
  /** A `Status` of the API server with this code and reason. */
  | { readonly kind: "refuse"; readonly code: number; readonly reason: string }
  /** An event of type ERROR with 410 as the first line of a watch. */
  | { readonly kind: "expired_event" }
  /** The API server does it, and its answer is lost with the connection. */
  | { readonly kind: "lose_answer" };

/** An HTTP proxy in front of a kube-apiserver, where requests meet what a test wants. */
export interface FaultProxy extends AsyncDisposable {
  readonly url: string;
  /** Asked for each request; undefined = it passes. */
  rule: (request: ApiRequest) => Treatment | undefined;
  /** Breaks every open watch; says how many there were. */
  cutWatches(): number;
}

/** Headers that belong to one connection, or to a body that is encoded otherwise from here on. */
const NOT_PASSED = new Set(["connection", "keep-alive", "transfer-encoding", "host", "upgrade"]);

/** Listens on loopback, without TLS; the bearer token of each request passes as it is. */
export async function startFaultProxy(
  upstream: { readonly url: string; readonly caFile: string },
): Promise<FaultProxy> {
  const ca = await Deno.readTextFile(upstream.caFile);
  const client = Deno.createHttpClient({ caCerts: [ca], http2: false });
  const watches = new Set<ServerResponse>();
  let rule: FaultProxy["rule"] = () => undefined;

  const serve = async (incoming: IncomingMessage, answer: ServerResponse) => {
    const path = incoming.url ?? "/";
    const method = incoming.method ?? "GET";
    const watch = /[?&]watch=(true|1)/.test(path);
    const body = await read(incoming);
    const treatment = rule({ method, path: path.split("?")[0] ?? path, watch });
    if (treatment !== undefined && treatment.kind !== "lose_answer") {
      return refuse(answer, treatment);
    }
    const gone = new AbortController();
    answer.on("close", () => gone.abort());
    const headers = new Headers({ "accept-encoding": "identity" });
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (NOT_PASSED.has(name) || name === "accept-encoding" || typeof value !== "string") continue;
      headers.set(name, value);
    }
    headers.delete("content-length");
    const reply = await fetch(upstream.url + path, {
      method,
      headers,
      client,
      signal: gone.signal,
      redirect: "manual",
      ...body.length === 0 ? {} : { body },
    });
    if (treatment !== undefined) {
      await reply.body?.cancel();
      return void answer.destroy();
    }
    answer.writeHead(reply.status, [...reply.headers].filter(([name]) => !NOT_PASSED.has(name)));
    if (reply.body === null) return void answer.end();
    if (watch) {
      watches.add(answer);
      answer.on("close", () => watches.delete(answer));
      answer.flushHeaders();
    }
    for await (const chunk of reply.body) {
      if (!answer.write(chunk)) await drained(answer, gone.signal);
    }
    answer.end();
  };
  const server = createServer((incoming, answer) => {
    // An API server that is away is a connection that ends without an answer.
    serve(incoming, answer).catch(() => answer.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("Start the proxy before the API server: it has no port");
  }
  return {
    url: `http://127.0.0.1:${address.port}`,
    get rule() {
      return rule;
    },
    set rule(next) {
      rule = next;
    },
    cutWatches() {
      const open = [...watches];
      for (const answer of open) answer.destroy();
      return open.length;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      client.close();
    },
  };
}

function drained(answer: ServerResponse, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    answer.once("drain", resolve);
    onAbort(gone, resolve);
  });
}

function refuse(
  answer: ServerResponse,
  treatment: Exclude<Treatment, { readonly kind: "lose_answer" }>,
): void {
  const event = treatment.kind === "expired_event";
  const { code, reason } = event ? { code: 410, reason: "Expired" } : treatment;
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    message: `the test answers ${code}`,
    reason,
    code,
  };
  const headers = { "content-type": "application/json" };
  answer.writeHead(event ? 200 : code, code === 429 ? { ...headers, "retry-after": "1" } : headers);
  answer.end(`${JSON.stringify(event ? { type: "ERROR", object: status } : status)}\n`);
}

async function read(incoming: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const parts: BlobPart[] = [];
  for await (const part of incoming) parts.push(part);
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
