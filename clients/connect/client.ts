import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import type { DescService } from "../../proto/runtime.ts";

/** A typed client of a service: one method per RPC, each takes `{ signal, headers, onHeader }`. */
export type ConnectClient<T extends DescService> = Client<T>;

/** Where and how a client calls. */
export interface ConnectClientOptions {
  /** Everything before `/package.Service/Method`, without a trailing slash. */
  readonly baseUrl: string;
  /**
   * The platform's by default. For mutual TLS give one with a `Deno.createHttpClient({ http2: false })`:
   * uploads over HTTP/2 are a hundred times slower here.
   */
  readonly fetch?: typeof globalThis.fetch;
  /** Sent with every call; read at each call, so that a rotated credential takes effect. */
  readonly headers?: () => Readonly<Record<string, string>>;
  /** Run around every call, first one outermost. */
  readonly interceptors?: readonly Interceptor[];
}

/**
 * A client of `service` by the Connect protocol in its binary form, over `fetch`. Calls reject with
 * `ConnectError`; aborting a call's signal drops its connection. No deadline of its own.
 */
export function connectClient<T extends DescService>(
  service: T,
  options: ConnectClientOptions,
): ConnectClient<T> {
  const { headers } = options;
  const addHeaders: Interceptor = (next) => (request) => {
    for (const [name, value] of Object.entries(headers?.() ?? {})) request.header.set(name, value);
    return next(request);
  };
  return createClient(
    service,
    createConnectTransport({
      baseUrl: options.baseUrl,
      useBinaryFormat: true,
      interceptors: [...options.interceptors ?? [], addHeaders],
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    }),
  );
}
