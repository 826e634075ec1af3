import { resolve } from "node:path";
import type { ProcessIdentity } from "../backends/process/process_identity.ts";
import { checkSpiffeId } from "../clients/spiffe/peer.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createHeldIdentities } from "./held_identities.ts";
import { keepAuthority } from "./kept_authority.ts";

/** A SPIFFE trust domain in this process, for one machine: development and tests only. */
export interface TrustDomain extends ProcessIdentity, AsyncDisposable {
  /** A Workload API socket that gives this SPIFFE ID at once; for the facade. `unix:///...`. */
  endpointFor(spiffeId: string): Promise<string>;
}

/** What {@link startTrustDomain} needs. */
export interface TrustDomainOptions {
  /** Keeps the CA's key and who has which identity; made with mode 0700. */
  readonly directory: string;
  /** Name of the trust domain, without `spiffe://`. */
  readonly trustDomain: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where sockets go when `directory` is too long or closed to the executor's user. */
  readonly temporaryDirectory?: string;
  /** Life of an SVID; renewed at half of it. */
  readonly svidTtlMs?: number;
}

/** As for Pods: what was taken from an executor is soon worth nothing. */
const SVID_TTL_MS = 300_000;

/**
 * Starts the trust domain. Its Workload API speaks the real protocol but cannot see its callers'
 * credentials, so each identity has a socket that only its user may open. CA and identities survive
 * a restart, and sockets of executors from an earlier run are served again under the same path.
 *
 * Throws when the directory cannot be written, or holds another trust domain's CA. Disposing ends
 * the streams; identities stay for the next start.
 */
export async function startTrustDomain(options: TrustDomainOptions): Promise<TrustDomain> {
  const { trustDomain, clock, logger, svidTtlMs: ttlMs = SVID_TTL_MS } = options;
  // Absolute, because executors with other working directories get paths below it.
  const directory = resolve(options.directory);
  await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
  await Deno.chmod(directory, 0o700);
  const now = clock.now();
  const authority = await keepAuthority(directory, { trustDomain, now, leftMs: 2 * ttlMs });
  const held = createHeldIdentities({ ...options, directory, authority, ttlMs });
  await held.restore();
  logger.info("development trust domain started", { trustDomain, identities: held.size });

  const bind = async (name: string, userId: number | null, spiffeId: string) => {
    const peer = checkSpiffeId(spiffeId, trustDomain);
    if (peer.kind === "refused") throw new TypeError(`Bind identity "${spiffeId}": ${peer.why}`);
    return await held.bind(name, userId, spiffeId);
  };
  return {
    async endpoint(executor, userId, { signal }) {
      signal.throwIfAborted();
      return urlOf(await held.hold(executor, userId));
    },
    async bind({ executor, userId, spiffeId }, { signal }) {
      signal.throwIfAborted();
      await bind(executor, userId, spiffeId);
    },
    async unbind(executor, { signal }) {
      signal.throwIfAborted();
      await held.release(executor);
    },
    endpointFor: async (spiffeId) => urlOf(await bind(spiffeId, null, spiffeId)),
    [Symbol.asyncDispose]: () => held[Symbol.asyncDispose](),
  };
}

function urlOf({ socket }: { readonly socket: string }): string {
  return `unix://${socket}`;
}
