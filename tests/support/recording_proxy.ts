import { createServer, request } from "node:http";

/** One request that passed. */
export interface RecordedRequest {
  /** Milliseconds on the monotonic clock, when it arrived. */
  readonly at: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The first bytes of its body that have come so far, as many as are kept. */
  readonly body: Uint8Array;
}

/** An HTTP proxy in front of one server that notes every request; it changes nothing. */
export interface RecordingProxy extends AsyncDisposable {
  readonly url: string;
  /** What has passed, oldest first; never more than the last {@link recordLimit}. */
  readonly requests: readonly RecordedRequest[];
  /** Forgets what has passed. */
  clear(): void;
  /** How many passed whose path `filter` accepts. */
  count(filter: (path: string) => boolean): number;
}

const recordLimit = 200_000;

/** Headers that belong to one connection only (RFC 9110, 7.6.1). */
const hopByHop = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"];

/**
 * Listens on loopback and passes each request to `upstream` as it came, `Host` included: Gitea builds
 * the addresses of artifacts from it. An upstream that does not answer is a 502.
 */
export async function startRecordingProxy(
  upstream: { readonly hostname: string; readonly port: number },
  options: {
    readonly port?: number;
    /** How many bytes of each body are kept; none by default. */
    readonly bodyBytes?: number;
  } = {},
): Promise<RecordingProxy> {
  const { bodyBytes = 0 } = options;
  const requests: RecordedRequest[] = [];
  const server = createServer((incoming, answer) => {
    const path = incoming.url ?? "/";
    const record = {
      at: performance.now(),
      method: incoming.method ?? "GET",
      path: path.split("?", 1)[0] ?? path,
      body: new Uint8Array(),
    };
    requests.push(record);
    if (bodyBytes > 0) {
      incoming.on("data", (chunk: Uint8Array) => {
        if (record.body.length >= bodyBytes) return;
        record.body = new Uint8Array([...record.body, ...chunk].slice(0, bodyBytes));
      });
    }
    if (requests.length > recordLimit) requests.shift();
    const headers = { ...incoming.headers };
    for (const name of hopByHop) delete headers[name];
    const outgoing = request({
      host: upstream.hostname,
      port: upstream.port,
      method: incoming.method,
      path,
      headers,
    }, (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    outgoing.on("error", () => {
      if (!answer.headersSent) answer.writeHead(502);
      answer.end();
    });
    answer.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", () => resolve());
  });
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("Start the recording proxy: the server has no port");
  }
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    clear: () => void requests.splice(0),
    count: (filter) => requests.filter((one) => filter(one.path)).length,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
