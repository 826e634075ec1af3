import { join } from "node:path";
import type { Authority } from "../clients/x509/trust_domain.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createIdentityStore } from "./identity_store.ts";
import { placeSocket, prepareSocketDirectory } from "./socket_directory.ts";
import { openWorkloadSocket, type WorkloadSocket } from "./workload_socket.ts";

/** One whose socket is served; without an identity until it is bound. */
export interface HeldIdentity {
  readonly name: string;
  readonly socket: string;
  readonly userId: number | null;
  spiffeId: string | null;
  readonly server: WorkloadSocket;
}

/** Who has a Workload API socket, and with which identity. Disposing ends the streams, no identity. */
export interface HeldIdentities extends AsyncDisposable {
  readonly size: number;
  /** Serves again what an earlier run held, under the same paths; what cannot be is logged. */
  restore(): Promise<void>;
  /** The socket for `name`, opened for that unix user (null = ours) if there is none. */
  hold(name: string, userId: number | null): Promise<HeldIdentity>;
  /** Gives it the SPIFFE ID from now on. */
  bind(name: string, userId: number | null, spiffeId: string): Promise<HeldIdentity>;
  /** Closes the socket and forgets the identity. Absent is success. */
  release(name: string): Promise<void>;
}

/** Makes {@link HeldIdentities} that are kept in `identities.json` of the directory. */
export function createHeldIdentities(
  options: {
    readonly directory: string;
    readonly authority: Authority;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly ttlMs: number;
    /** Where sockets go when `directory` is too long or closed to the executor's user. */
    readonly temporaryDirectory?: string;
  },
): HeldIdentities {
  const { directory, authority, clock, logger, ttlMs } = options;
  const store = createIdentityStore(join(directory, "identities.json"));
  const held = new Map<string, Promise<HeldIdentity>>();

  const save = async () => {
    const settled = await Promise.allSettled(held.values());
    const stored = settled.flatMap((s) => s.status === "fulfilled" ? [s.value] : [])
      .map(({ name, socket, userId, spiffeId }) => ({ name, socket, userId, spiffeId }));
    await store.save(stored);
  };
  const serve = async (name: string, socket: string, userId: number | null) => {
    const at = { path: socket, userId, ttlMs };
    const server = await openWorkloadSocket({ authority, clock }, at);
    return { name, socket, userId, spiffeId: null, server };
  };
  const open = async (name: string, userId: number | null): Promise<HeldIdentity> => {
    const known = held.get(name);
    if (known !== undefined) {
      const found = await known;
      if (found.userId === userId) return found;
      await close(name);
    }
    const opening = placeSocket(name, { ...options, userId })
      .then((path) => serve(name, path, userId));
    held.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      held.delete(name);
      throw error;
    }
  };
  const close = async (name: string) => {
    const found = held.get(name);
    if (found === undefined) return;
    held.delete(name);
    await (await found).server[Symbol.asyncDispose]();
  };

  return {
    get size() {
      return held.size;
    },
    async restore() {
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
    },
    async hold(name, userId) {
      const target = await open(name, userId);
      await save();
      return target;
    },
    async bind(name, userId, spiffeId) {
      const target = await open(name, userId);
      target.spiffeId = spiffeId;
      target.server.bind(spiffeId);
      await save();
      return target;
    },
    async release(name) {
      await close(name);
      await save();
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
