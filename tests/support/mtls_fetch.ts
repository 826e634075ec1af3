import { Buffer } from "node:buffer";
import http2 from "node:http2";
import { Agent, request as httpsRequest } from "node:https";

/** Client side of mutual TLS, PEM. */
export interface MtlsOptions {
  readonly ca: string;
  /** Undefined = no client certificate. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** A `fetch` with a client certificate that does not look at host names; dispose it to close. */
export interface MtlsFetch extends Disposable {
  readonly fetch: typeof fetch;
}

/** Over HTTP/1.1, connections kept. A failed connection rejects with a `TypeError`, as fetch does. */
export function createMtlsFetch(options: MtlsOptions): MtlsFetch {
  const agent = new Agent({
    ...tls(options),
    keepAlive: true,
    ALPNProtocols: ["http/1.1"],
    checkServerIdentity: () => undefined,
  });
  const send: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = new Uint8Array(await request.arrayBuffer());
    const url = new URL(request.url);
    return await new Promise<Response>((resolve, reject) => {
      const outgoing = httpsRequest({
        agent,
        host: url.hostname,
        port: url.port,
        path: url.pathname,
        method: request.method,
        headers: { ...Object.fromEntries(request.headers), "content-length": body.length },
        signal: request.signal,
      }, (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("error", (cause) => reject(new TypeError("the answer broke off", { cause })));
        answer.on("end", () => {
          const headers = new Headers();
          for (const [name, value] of Object.entries(answer.headers)) {
            if (value !== undefined) headers.set(name, String(value));
          }
          resolve(responseOf(answer.statusCode ?? 0, headers, parts));
        });
      });
      outgoing.on("error", (cause) => reject(new TypeError("no connection", { cause })));
      outgoing.end(Buffer.from(body));
    });
  };
  return { fetch: send, [Symbol.dispose]: () => agent.destroy() };
}

/** Over HTTP/2, one connection for each call. */
export function createMtlsFetch2(options: MtlsOptions): MtlsFetch {
  const send: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = new Uint8Array(await request.arrayBuffer());
    const url = new URL(request.url);
    return await new Promise<Response>((resolve, reject) => {
      const session = http2.connect(url.origin, {
        ...tls(options),
        checkServerIdentity: () => undefined,
      });
      const fail = (cause: unknown) => {
        session.destroy();
        reject(new TypeError("no connection", { cause }));
      };
      session.on("error", fail);
      const stream = session.request({
        ":path": url.pathname,
        ":method": request.method,
        ...Object.fromEntries(request.headers),
      });
      const headers = new Headers();
      const parts: Buffer[] = [];
      let status = 0;
      stream.on("error", fail);
      stream.on("response", (answer) => {
        status = Number(answer[":status"]);
        for (const [name, value] of Object.entries(answer)) {
          if (!name.startsWith(":") && value !== undefined) headers.set(name, String(value));
        }
      });
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("end", () => {
        // A refused certificate shows as a stream that ends without an answer.
        if (status === 0) return fail(new Error("no answer"));
        session.close();
        resolve(responseOf(status, headers, parts));
      });
      stream.end(Buffer.from(body));
    });
  };
  return { fetch: send, [Symbol.dispose]: () => {} };
}

function tls({ ca, cert, key }: MtlsOptions) {
  return cert === undefined || key === undefined ? { ca } : { ca, cert, key };
}

function responseOf(status: number, headers: Headers, parts: readonly Buffer[]): Response {
  const empty = status === 204 || status === 304;
  return new Response(empty ? null : new Uint8Array(Buffer.concat(parts)), { status, headers });
}
