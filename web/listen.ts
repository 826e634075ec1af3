import type { Listen } from "../controller/config/config.ts";
import { isLoopback } from "../controller/config/values.ts";
import { listenHost } from "../lib/every_address.ts";
import type { Web } from "./server.ts";

/** A server that listens; dispose it to stop: event streams end at once, requests within two seconds. */
export interface Listener extends AsyncDisposable {
  /** The address in use; the port is the real one when 0 was asked for. */
  readonly address: Listen;
}

/** Open requests may take this long to end when the server stops; the end of the process ends the rest. */
const GRACE_MS = 2000;

/** What is listened for; what can be disposed of is disposed of first, so that its event streams end. */
type App = Pick<Web, "fetch"> & Partial<AsyncDisposable>;

/**
 * Serves the dashboard. Without `signIn` only on loopback: throws
 * `RangeError` for any other address, and what `Deno.serve` throws when the port is taken.
 */
export function listenWeb(
  web: App,
  address: Listen,
  { signIn = false }: { readonly signIn?: boolean } = {},
): Listener {
  if (!signIn && !isLoopback(address.hostname)) {
    throw new RangeError(
      `Set ADMIN_LISTEN to a loopback address: "${address.hostname}" can be reached by others, and ` +
        "no ADMIN_TOKENS or OIDC_ISSUER says who may look",
    );
  }
  return listen(web, address);
}

/** Serves probes and metrics, on any address. */
export function listenHealth(health: Pick<Web, "fetch">, address: Listen): Listener {
  return listen(health, address);
}

function listen(app: App, address: Listen): Listener {
  const server = Deno.serve({
    hostname: listenHost(address.hostname),
    port: address.port,
    // Leaves event streams alone: they say no-transform.
    automaticCompression: true,
    onListen() {},
  }, (request, info) => app.fetch(request, info));
  return {
    address: { hostname: server.addr.hostname, port: server.addr.port },
    async [Symbol.asyncDispose]() {
      // A tab that is left open has a stream, which would be waited for.
      await app[Symbol.asyncDispose]?.();
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, GRACE_MS);
      try {
        // Not by the signal of `Deno.serve`: once it is shutting down, that throws (Deno 2.9.6).
        await Promise.race([server.shutdown(), late.promise]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
