import type { RecordedRequest } from "./recording_proxy.ts";

/** An HTTPS proxy in front of one server that notes every request; it changes nothing. */
export interface RecordingTlsProxy extends AsyncDisposable {
  readonly port: number;
  /** What has passed, oldest first; never more than the last {@link recordLimit}. */
  readonly requests: readonly RecordedRequest[];
}

const recordLimit = 200_000;
/** Of one connection (RFC 9110, 7.6.1), or of a body as it was: answers come uncompressed. */
const NOT_PASSED = ["connection", "keep-alive", "transfer-encoding", "accept-encoding", "host"];

/**
 * Listens on loopback with `cert` and passes each request to `upstream` (an https URL that `ca` vouches
 * for). Answers are passed on as they come, their heads before the first byte. An upstream that does not
 * answer is a 502.
 */
export function startRecordingTlsProxy(
  upstream: string,
  options: {
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
    /** How many bytes of each body are kept. */
    readonly bodyBytes: number;
  },
): RecordingTlsProxy {
  const { ca, cert, key, bodyBytes } = options;
  const requests: RecordedRequest[] = [];
  const client = Deno.createHttpClient({ caCerts: [ca] });
  const stop = new AbortController();
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    cert,
    key,
    signal: stop.signal,
    onListen: () => {},
    onError: () => new Response(null, { status: 502 }),
  }, async (request) => {
    const at = performance.now();
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    for (const name of NOT_PASSED) headers.delete(name);
    const record = { at, method: request.method, path: pathname, body: new Uint8Array() };
    requests.push(record);
    if (requests.length > recordLimit) requests.shift();
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
    if (body !== null) record.body = body.slice(0, bodyBytes);
    return await fetch(`${upstream}${pathname}${search}`, {
      method: request.method,
      headers,
      body,
      redirect: "manual",
      signal: stop.signal,
      client,
    });
  });
  return {
    port: server.addr.port,
    requests,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await server.finished;
      client.close();
    },
  };
}
