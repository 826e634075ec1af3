import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Buffer } from "node:buffer";
import { bareHost } from "../lib/host.ts";
import type { Logger } from "../lib/logger.ts";

/** The runner's side of a CONNECT. */
export interface TunnelRequest {
  readonly socket: Duplex;
  /** What came with the request already. */
  readonly head: Buffer;
}

/** Where the tunnel leads. */
export interface TunnelOptions {
  /** `host:port`. */
  readonly target: string;
  /** Proxy to go through, if the container itself needs one. */
  readonly upstream?: URL;
  readonly logger: Logger;
}

/** Joins the runner's socket with the target's, unread, until either side ends. 502 if there is none. */
export function openTunnel(request: TunnelRequest, options: TunnelOptions): void {
  const { socket, head } = request;
  const via = options.upstream ?? URL.parse(`http://${options.target}`);
  if (via === null || via.hostname === "") {
    socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    return;
  }
  const port = via.port === "" ? (options.upstream === undefined ? 443 : 80) : Number(via.port);
  const far = connect({ host: bareHost(via.hostname), port });
  let joined = false;
  const join = () => {
    joined = true;
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    if (head.length > 0) far.write(head);
    socket.pipe(far);
    far.pipe(socket);
  };
  far.on("connect", () => {
    if (options.upstream === undefined) join();
    else askUpstream(far, options.target, options.upstream, join);
  });
  far.on("error", (error) => {
    options.logger.debug("tunnel ended", { target: options.target, error });
  });
  // Also after an error. A proxy may go without one, and without an answer.
  far.on("close", () => {
    if (joined) socket.destroy();
    else socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  socket.on("error", () => far.destroy());
  socket.on("close", () => far.destroy());
}

/** Sends our own CONNECT; `join` when it is granted, otherwise the socket is destroyed with an error. */
function askUpstream(far: Socket, target: string, upstream: URL, join: () => void): void {
  const secret = upstream.username === ""
    ? ""
    : `Proxy-Authorization: Basic ${
      btoa(`${decodeURIComponent(upstream.username)}:${decodeURIComponent(upstream.password)}`)
    }\r\n`;
  far.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${secret}\r\n`);
  let answer = "";
  const onData = (part: Buffer) => {
    answer += part.toString("latin1");
    const end = answer.indexOf("\r\n\r\n");
    if (end < 0 && answer.length < 16_384) return;
    far.off("data", onData);
    far.pause();
    if (!/^HTTP\/1\.[01] 2/.test(answer)) {
      far.destroy(new Error(`Open tunnel: the proxy answered "${answer.split("\r\n")[0]}"`));
      return;
    }
    const rest = answer.slice(end + 4);
    join();
    if (rest !== "") far.unshift(Uint8Array.from(rest, (char) => char.charCodeAt(0)));
  };
  far.on("data", onData);
}
