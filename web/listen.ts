import type { Listen } from "../controller/config/config.ts";
import { isLoopback } from "../controller/config/values.ts";
import { listenHost } from "../lib/every_address.ts";
import type { Web } from "./server.ts";

/** A server that listens; dispose it to stop, open requests get two seconds to end. */
export interface Listener extends AsyncDisposable {
  /** The address in use; the port is the real one when 0 was asked for. */
  readonly address: Listen;
}

/** Open requests may take this long to end when the server stops. */
const GRACE_MS = 2000;

/**
 * Serves the dashboard. Without `signIn` only on loopback: throws
 * `RangeError` for any other address, and what `Deno.serve` throws when the port is taken.
 */
export function listenWeb(
  web: Pick<Web, "fetch">,
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

function listen(app: Pick<Web, "fetch">, address: Listen): Listener {
  const stop = new AbortController();
  const server = Deno.serve({
    hostname: listenHost(address.hostname),
    port: address.port,
    signal: stop.signal,
    // Leaves event streams alone: they say no-transform.
    automaticCompression: true,
    onListen() {},
  }, (request, info) => app.fetch(request, info));
  return {
    address: { hostname: server.addr.hostname, port: server.addr.port },
    async [Symbol.asyncDispose]() {
      const cut = setTimeout(() => stop.abort(), GRACE_MS);
      try {
        await server.shutdown();
      } finally {
        clearTimeout(cut);
      }
      await server.finished;
    },
  };
}
