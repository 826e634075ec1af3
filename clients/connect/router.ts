import {
  type ConnectRouter,
  createConnectRouter,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalHandlerFn } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { boundedHandler } from "./bounded_handler.ts";

export type { ConnectRouter };

/** Registers services: `(router) => router.service(Service, { method(request, context) {} })`. */
export type Register = (router: ConnectRouter) => void;

/** Limits and hooks of a server, the same for every way of serving. */
export interface RouterOptions {
  /** Before `/package.Service/Method`; `/api/actions` is Gitea's. */
  readonly requestPathPrefix?: string;
  /** Largest message, bytes, also after unpacking. Larger ones are refused as `resource_exhausted`. */
  readonly readMaxBytes?: number;
  /**
   * Most fields of one message, at every depth; more are refused as `resource_exhausted` before they
   * are decoded. Only the binary form of the Connect protocol is served then.
   */
  readonly maxFields?: number;
  /** Runs before the body is read: throw a `ConnectError` to refuse a caller cheaply. */
  readonly gate?: (context: HandlerContext) => void | Promise<void>;
  /** Run around every call, first one outermost. */
  readonly interceptors?: readonly Interceptor[];
  /** Aborts the signals of all calls in flight. */
  readonly shutdownSignal?: AbortSignal;
}

/** Bound on a message where none is given: above Gitea's largest output (1 MiB) and log batches. */
const DEFAULT_READ_MAX_BYTES = 16 * 1024 * 1024;

/** Handlers by full request path. gzip both ways, answers from 1 KiB on, as Gitea does. */
export function routesByPath(
  register: Register,
  options: RouterOptions,
): ReadonlyMap<string, UniversalHandlerFn> {
  const { readMaxBytes = DEFAULT_READ_MAX_BYTES, maxFields } = options;
  const router = createConnectRouter({
    acceptCompression: [compressionGzip],
    compressMinBytes: 1024,
    readMaxBytes,
    interceptors: [...options.interceptors ?? []],
    ...(options.gate === undefined ? {} : { requestGate: options.gate }),
    ...(options.shutdownSignal === undefined ? {} : { shutdownSignal: options.shutdownSignal }),
  });
  register(router);
  const prefix = options.requestPathPrefix ?? "/api/actions";
  return new Map(router.handlers.map((handler) => [
    prefix + handler.requestPath,
    maxFields === undefined ? handler : boundedHandler(handler, { readMaxBytes, maxFields }),
  ]));
}
