import {
  Agent,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from "node:http";
import { bareHost } from "../lib/host.ts";

/** Passes requests on to where they were going. */
export interface Origin extends Disposable {
  /**
   * Sends the absolute-form request on and streams both bodies. Host and every header but the
   * hop-by-hop ones stay as they are; 502 when the origin cannot be reached.
   */
  pass(request: IncomingMessage, response: ServerResponse): void;
}

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Makes an {@link Origin} with connections of its own. */
export function createOrigin(): Origin {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  return {
    pass(request, response) {
      const target = request.url ?? "";
      const url = new URL(target);
      const outgoing = httpRequest({
        agent,
        host: bareHost(url.hostname),
        port: url.port === "" ? 80 : Number(url.port),
        method: request.method,
        // As written, not as the URL parser would write it.
        path: target.replace(/^http:\/\/[^/?#]*/i, "").replace(/^(?=\?|$)/, "/"),
        headers: {
          ...endToEnd(request.rawHeaders),
          // A body of unknown length must be framed for methods that seldom have one, too.
          ...(request.headers["transfer-encoding"] === undefined
            ? {}
            : { "transfer-encoding": "chunked" }),
        },
      });
      // A body may be long in coming; the origin may answer before it.
      outgoing.flushHeaders();
      const fail = () => {
        if (response.headersSent) response.destroy();
        else response.writeHead(502, { "content-type": "text/plain" }).end("no answer\n");
      };
      outgoing.on("error", fail);
      outgoing.on("response", (answer) => {
        response.writeHead(answer.statusCode ?? 502, endToEnd(answer.rawHeaders));
        answer.on("error", fail);
        answer.pipe(response);
      });
      response.on("close", () => outgoing.destroy());
      request.on("error", () => outgoing.destroy());
      request.pipe(outgoing);
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Headers by name without the hop-by-hop ones, also those that `Connection` names (RFC 9110, 7.6.1). */
export function endToEnd(raw: readonly string[]): Record<string, string | string[]> {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) pairs.push([raw[i] ?? "", raw[i + 1] ?? ""]);
  const named = pairs
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) => value.toLowerCase().split(",").map((part) => part.trim()));
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    if (HOP_BY_HOP.has(key) || named.includes(key)) continue;
    const before = headers[key];
    // One value as a string: `node:http` takes no list for Host.
    headers[key] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}
