import {
  type Backend,
  BackendError,
  type Call,
  type Executor,
  type ExecutorChange,
  type ExecutorSpec,
} from "../../controller/backend.ts";
import type { ExecutorName, Instance } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomHex } from "../../lib/random_hex.ts";
import { decodeAnnotations, encodeAnnotations } from "./annotations.ts";
import { createPace } from "./create_pace.ts";
import { createCreating } from "./creating.ts";
import { groupsOf, keptOf, spareOf } from "./duplicates.ts";
import { EXECUTOR_ENTRYPOINT } from "./entrypoint.ts";
import { toBackendError, toReadError } from "./errors.ts";
import { createRemains } from "./remains.ts";
import type { NewSandbox, Sandbox, Sandboxes } from "./sandboxes.ts";
import { BOUND, boundKey, executorOf, nameOf, selectorOf } from "./status.ts";
import { createTurns } from "./turns.ts";
import { pollSandboxes } from "./watch.ts";

/** What the VM backend is made of. */
export interface VmBackendOptions {
  readonly api: Sandboxes;
  /** `OPENSANDBOX_POOL`. */
  readonly pool: string;
  /** `VM_TIMEOUT_SECONDS`: after so long the server takes a sandbox away, whatever it does. */
  readonly timeoutMs: number;
  /** `SPIFFE_ENDPOINT_SOCKET`, as it is in the guest. */
  readonly endpointSocket: string;
  /** `METADATA_PREFIX`. */
  readonly prefix: string;
  readonly instance: Instance;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Throws when this process may not act any more; asked before what follows on a read. */
  guard(): void;
  /** How often {@link Backend.watch} lists; default 5 s. */
  readonly pollMs?: number;
  /** Bound of creates at the pool; default 2. */
  readonly createsPerSecond?: number;
  /** For how long a create without an answer may still come through; default 20 s. */
  readonly doubtMs?: number;
  readonly randomId?: () => string;
}

/**
 * Executors as sandboxes of an OpenSandbox pool. The server names sandboxes itself and makes one for
 * each request, so that ours are found by metadata. It has no watch: one list at an interval stands for
 * all. What is true of an executor is read from the server each time; kept here are creates without an
 * answer, and ends that the server does not tell (`remains.ts`).
 *
 * ```
 *  create --> Pending --> Running --> Failed, Terminated ---+
 *     |          |           |   \                          +--> Stopping --> gone
 *     |          |           |    +-- lifetime over: gone, told as `Expired`
 *     |          +-----------+------- deleted by us or others
 *     +-- failed to start: gone, told as `Failed`
 * ```
 */
export function createVmBackend(options: VmBackendOptions): Backend {
  const { api, clock, prefix, guard } = options;
  const logger = options.logger.child({ backend: "vm" });
  const { labels, annotations } = metadataKeys(prefix);
  const all = { [labels.backend]: "vm" };
  const remains = createRemains(options);
  const pace = createPace({
    pool: options.pool,
    clock,
    logger,
    perSecond: options.createsPerSecond ?? 2,
  });
  /** Which sandbox a create has given out, for as long as it is there. */
  const given = new Map<ExecutorName, string>();
  const patches = createTurns();

  const seen = (sandbox: Sandbox) => executorOf(sandbox, prefix);
  const kept = (sandboxes: readonly Sandbox[]) => keptOf(sandboxes, { prefix, given });

  const lookUp = async (name: ExecutorName, call: Call): Promise<readonly Sandbox[]> => {
    const selector = selectorOf(name, prefix);
    if (selector !== undefined) return await api.list(selector, call);
    const found = await api.get(name, call);
    return found === undefined || nameOf(found, prefix) !== name ? [] : [found];
  };

  const creating = createCreating({
    api,
    pace,
    clock,
    doubtMs: options.doubtMs ?? 20_000,
    lookUp,
    randomId: options.randomId ?? (() => randomHex(16)),
    guard,
  });

  const read = <T>(action: string, { signal }: Call, run: () => Promise<T>) =>
    attempt(run, signal, (error) => toReadError(action, error));

  const find = async (name: ExecutorName, call: Call): Promise<Executor | undefined> => {
    let found = kept(await lookUp(name, call));
    // A create that nobody waits for any more may be about to show.
    if (found === undefined && await creating.settled(name, call)) {
      found = kept(await lookUp(name, call));
    }
    if (found === undefined) return remains.of(name);
    remains.see(found);
    return seen(found);
  };

  const listAll = async (call: Call): Promise<Listing> => {
    const before = [...given];
    const sandboxes = await api.list(all, call);
    const ids = new Set(sandboxes.map(({ id }) => id));
    for (const [name, id] of before) if (!ids.has(id)) given.delete(name);
    const groups = groupsOf(sandboxes, prefix);
    const best = groups.flatMap((group) => kept(group) ?? []);
    remains.seeAll(best);
    const there = best.map(seen);
    const names = new Set(there.map(({ name }) => name));
    const gone = remains.all().filter(({ name }) => !names.has(name));
    return { groups, executors: [...there, ...gone] };
  };

  /** Of those that one assignment has too many of, by a create whose answer was lost. */
  const sweep = async ({ groups }: Listing, call: Call) => {
    for (const group of groups) {
      const best = kept(group);
      for (const { id } of best === undefined ? [] : spareOf(group, best, prefix)) {
        guard();
        logger.warn("a second sandbox of one assignment is deleted", { executor: id });
        await api.delete(id, call);
      }
    }
  };

  return {
    name: "vm",
    find: (name, call) => read(`Find executor "${name}"`, call, () => find(name, call)),
    create(spec, call) {
      const action = `Make executor "${spec.name}"`;
      return attempt(
        async () => {
          if (remains.of(spec.name) !== undefined) {
            throw new BackendError("conflict", `${action}: what is left of another one is there`);
          }
          const made = await creating.create(spec, sandboxOf(spec), call);
          if ("uid" in made) {
            remains.add(made);
            return made;
          }
          given.set(spec.name, made.id);
          remains.see(made);
          return seen(made);
        },
        call.signal,
        (error) => toBackendError(action, error),
      );
    },
    bindIdentity({ name, uid }, assignment, call) {
      const action = `Bind the identity of executor "${name}"`;
      return read(action, call, async () => {
        const group = await lookUp(name, call);
        const sandbox = group.find(({ id }) => id === uid);
        if (sandbox === undefined || sandbox.state === "Stopping" || kept(group)?.id !== uid) {
          throw new BackendError("conflict", `${action}: it is gone, or being deleted`);
        }
        const decoded = decodeAnnotations(sandbox.metadata, prefix);
        const stated = decoded.kind === "decoded" ? decoded.annotations[annotations.spiffeId] : "";
        if (stated !== assignment.identity.spiffeId) {
          const why = decoded.kind === "decoded"
            ? `sandbox ${uid} has inconsistent SPIFFE identity metadata`
            : decoded.detail;
          throw new BackendError("invalid", `${action}: ${why}`, { retryable: false });
        }
        if (sandbox.metadata[boundKey(prefix)] === BOUND) return;
        guard();
        const bound = { [boundKey(prefix)]: BOUND };
        if (await patches.take(uid, call, () => api.patch(uid, bound, call))) return;
        throw new BackendError("conflict", `${action}: it is gone`);
      });
    },
    markTerminal({ name, uid }, call) {
      return read(`Mark executor "${name}"`, call, async () => {
        const marked = { [labels.terminal]: "true" };
        await patches.take(uid, call, () => api.patch(uid, marked, call));
      });
    },
    list: (call) =>
      read("List executors", call, async () => {
        const listing = await listAll(call);
        await sweep(listing, call);
        return listing.executors;
      }),
    watch: ({ signal }): AsyncIterable<ExecutorChange> =>
      pollSandboxes({
        list: () =>
          read("Watch executors", { signal }, async () => (await listAll({ signal })).executors),
        find: (name) => read(`Find executor "${name}"`, { signal }, () => find(name, { signal })),
        pollMs: options.pollMs ?? 5_000,
        clock,
        logger,
      }, signal),
    delete({ name, uid }, call) {
      return read(`Delete executor "${name}"`, call, async () => {
        const group = await lookUp(name, call);
        const own = group.find(({ id }) => id === uid);
        // Its duplicates first: once it is gone nobody could tell them from others.
        for (const { id } of own === undefined ? [] : spareOf(group, own, prefix)) {
          guard();
          await api.delete(id, call);
        }
        guard();
        if (own !== undefined && await api.delete(uid, call)) pace.freed();
        remains.forget({ name, uid });
        if (given.get(name) === uid) given.delete(name);
      });
    },
  };

  function sandboxOf(spec: ExecutorSpec): NewSandbox {
    return {
      pool: options.pool,
      entrypoint: EXECUTOR_ENTRYPOINT,
      environment: { ...spec.environment, SPIFFE_ENDPOINT_SOCKET: options.endpointSocket },
      metadata: {
        ...spec.metadata.labels,
        ...encodeAnnotations(spec.metadata.annotations, prefix),
      },
      timeoutMs: options.timeoutMs,
    };
  }
}

interface Listing {
  readonly executors: Executor[];
  /** Sandboxes by their executor. */
  readonly groups: readonly Sandbox[][];
}

/** Runs one call of the port: what it throws is the signal's reason, or what `judge` makes of it. */
async function attempt<T>(
  run: () => Promise<T>,
  signal: AbortSignal,
  judge: (error: unknown) => BackendError,
): Promise<T> {
  signal.throwIfAborted();
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    throw judge(error);
  }
}
