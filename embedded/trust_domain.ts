import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ProcessIdentity } from "../backends/process/process_identity.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { type Authority, createAuthority, restoreAuthority } from "../clients/x509/trust_domain.ts";
import { checkSpiffeId } from "../clients/spiffe/peer.ts";
import { readIfThere } from "../lib/if_there.ts";
import { replaceFile } from "../lib/replace_file.ts";
import { createIdentityStore } from "./identity_store.ts";
import { MAX_SOCKET_PATH, prepareSocketDirectory } from "./socket_directory.ts";
import { openWorkloadSocket, type WorkloadSocket } from "./workload_socket.ts";

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

interface Held {
  readonly name: string;
  readonly socket: string;
  readonly userId: number | null;
  spiffeId: string | null;
  readonly server: WorkloadSocket;
}

/** As for Pods (SPEC 9): what was taken from an executor is soon worth nothing. */
const SVID_TTL_MS = 300_000;

/**
 * Starts the trust domain. Its Workload API speaks the real protocol but cannot see its callers'
 * credentials, so each identity has a socket that only its user may open. CA and identities survive
 * a restart, and sockets of executors from an earlier run are served again under the same path.
 *
 * Throws when the directory cannot be written, or holds another trust domain's CA. Disposing ends
 * the streams; identities stay for the next start.
 */
export async function startTrustDomain(given: TrustDomainOptions): Promise<TrustDomain> {
  // Absolute, because executors with other working directories get these paths.
  const options = { ...given, directory: resolve(given.directory) };
  const { directory, trustDomain, clock, logger, svidTtlMs = SVID_TTL_MS } = options;
  await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
  await Deno.chmod(directory, 0o700);
  const authority = await keepAuthority(options);
  const store = createIdentityStore(join(directory, "identities.json"));
  const held = new Map<string, Promise<Held>>();

  const save = async () => {
    const settled = await Promise.allSettled(held.values());
    const stored = settled.flatMap((s) => s.status === "fulfilled" ? [s.value] : [])
      .map(({ name, socket, userId, spiffeId }) => ({ name, socket, userId, spiffeId }));
    await store.save(stored);
  };
  const serve = async (name: string, socket: string, userId: number | null) => {
    const server = await openWorkloadSocket({ authority, clock }, {
      path: socket,
      userId,
      ttlMs: svidTtlMs,
    });
    return { name, socket, userId, spiffeId: null, server };
  };
  const hold = async (name: string, userId: number | null): Promise<Held> => {
    const known = held.get(name);
    if (known !== undefined) {
      const found = await known;
      if (found.userId === userId) return found;
      await release(name);
    }
    const opening = placeSocket(options, name, userId).then((path) => serve(name, path, userId));
    held.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      held.delete(name);
      throw error;
    }
  };
  const release = async (name: string) => {
    const found = held.get(name);
    if (found === undefined) return;
    held.delete(name);
    await (await found).server[Symbol.asyncDispose]();
  };
  const bind = async (name: string, userId: number | null, spiffeId: string) => {
    const peer = checkSpiffeId(spiffeId, trustDomain);
    if (peer.kind === "refused") throw new TypeError(`Bind identity "${spiffeId}": ${peer.why}`);
    const target = await hold(name, userId);
    target.spiffeId = spiffeId;
    target.server.bind(spiffeId);
    await save();
    return target;
  };

  for (const { name, socket, userId, spiffeId } of await store.load()) {
    try {
      await prepareSocketDirectory(join(socket, ".."), userId !== null);
      const again = await serve(name, socket, userId);
      again.server.bind(spiffeId);
      held.set(name, Promise.resolve({ ...again, spiffeId }));
    } catch (error) {
      logger.warn("identity of an earlier run cannot be served", { name, error });
    }
  }
  logger.info("development trust domain started", { trustDomain, identities: held.size });

  return {
    async endpoint(executor, userId, { signal }) {
      signal.throwIfAborted();
      const target = await hold(executor, userId);
      await save();
      return `unix://${target.socket}`;
    },
    async bind({ executor, userId, spiffeId }, { signal }) {
      signal.throwIfAborted();
      await bind(executor, userId, spiffeId);
    },
    async unbind(executor, { signal }) {
      signal.throwIfAborted();
      await release(executor);
      await save();
    },
    async endpointFor(spiffeId) {
      const target = await bind(spiffeId, null, spiffeId);
      return `unix://${target.socket}`;
    },
    async [Symbol.asyncDispose]() {
      const all = await Promise.allSettled(held.values());
      held.clear();
      for (const one of all) {
        if (one.status === "fulfilled") await one.value.server[Symbol.asyncDispose]();
      }
    },
  };
}

/** The CA kept in the directory, made when there is none or when it nears its end. */
async function keepAuthority(options: TrustDomainOptions): Promise<Authority> {
  const { directory, trustDomain, clock, svidTtlMs = SVID_TTL_MS } = options;
  const path = join(directory, "authority.pem");
  const pem = await readIfThere(path);
  if (pem !== undefined) {
    try {
      const authority = await restoreAuthority(pem, trustDomain);
      if (authority.expiresAt > clock.now() + 2 * svidTtlMs) return authority;
    } catch (error) {
      throw new Error(
        `Read CA "${path}": it is damaged or another trust domain's: remove it to start anew`,
        { cause: error },
      );
    }
  }
  const authority = await createAuthority(trustDomain, clock.now());
  await replaceFile(path, await authority.exportPem());
  return authority;
}

/** A short, stable path that `userId` can reach: our own directory is closed to other users. */
async function placeSocket(
  options: TrustDomainOptions,
  name: string,
  userId: number | null,
): Promise<string> {
  const file = `${(await hash(name)).slice(0, 24)}.sock`;
  const own = join(options.directory, "sockets", file);
  const base = `gdr-${(await hash(options.directory)).slice(0, 16)}`;
  const away = join(options.temporaryDirectory ?? tmpdir(), base, file);
  const path = userId === null && byteLength(own) <= MAX_SOCKET_PATH ? own : away;
  if (byteLength(path) > MAX_SOCKET_PATH) {
    throw new Error(
      `Place socket "${path}": longer than ${MAX_SOCKET_PATH} bytes: use a shorter directory`,
    );
  }
  await prepareSocketDirectory(join(path, ".."), path === away);
  return path;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

async function hash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(digest).toHex();
}
