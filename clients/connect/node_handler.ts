import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { ContextValues } from "@connectrpc/connect";
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { type Register, type RouterOptions, routesByPath } from "./router.ts";

/** A request of `node:http`, `node:https` or `node:http2`. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** Its answer. */
export type NodeResponse = ServerResponse | Http2ServerResponse;

/** Options of {@link connectHandler}. */
export interface NodeHandlerOptions extends RouterOptions {
  /**
   * Values for the handlers of one request, e.g. the peer certificate from `request.socket`.
   * Throwing ends the request with 500 before anything of it is read.
   */
  readonly contextValues?: (request: NodeRequest) => ContextValues;
  /** Requests for any other path; 404 by default. */
  readonly fallback?: (request: NodeRequest, response: NodeResponse) => void;
  /** An answer that could not be written, nearly always because the client went away. */
  readonly onError?: (error: unknown, path: string) => void;
}

/**
 * A request listener that serves Connect (and gRPC over HTTP/2) on `node:http`, `node:https` and
 * `node:http2` servers. The library's own adapter prints to the console when a client goes away;
 * this one calls `onError` instead.
 */
export function connectHandler(
  register: Register,
  options: NodeHandlerOptions = {},
): (request: NodeRequest, response: NodeResponse) => void {
  const routes = routesByPath(register, options);
  const fallback = options.fallback ?? notFound;
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const handler = routes.get(path);
    if (handler === undefined) return fallback(request, response);
    const answer = async () => {
      const values = options.contextValues?.(request);
      const universal = universalRequestFromNodeRequest(request, response, undefined, values);
      await universalResponseToNodeResponse(await handler(universal), response);
    };
    answer().catch((error: unknown) => {
      options.onError?.(error, path);
      // A failure after the head went out cannot be told to the client but by the end of the stream.
      if (!response.headersSent) response.statusCode = 500;
      if (!response.writableEnded) response.end();
    });
  };
}

function notFound(_request: NodeRequest, response: NodeResponse): void {
  response.statusCode = 404;
  response.end();
}
