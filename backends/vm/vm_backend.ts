import {
  type Backend,
  BackendError,
  type Call,
  type Executor,
  type ExecutorChange,
  type ExecutorSpec,
} from "../../controller/backend.ts";
import type { ExecutorName, Instance, TaskId } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { Clock } from "../../lib/clock.ts";
import { createKeyedMutex } from "../../lib/keyed_mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomHex } from "../../lib/random_hex.ts";
import { decodeAnnotations, encodeAnnotations } from "./annotations.ts";
import { createPace } from "./create_pace.ts";
import { createCreating } from "./creating.ts";
import { spareOf } from "./duplicates.ts";
import { EXECUTOR_ENTRYPOINT } from "./entrypoint.ts";
import { toBackendError, toReadError } from "./errors.ts";
import { createRemains } from "./remains.ts";
import type { NewSandbox, Sandbox, Sandboxes } from "./sandboxes.ts";
import { createSightings } from "./sightings.ts";
import { BOUND, boundKey, executorOf } from "./status.ts";
import { pollSandboxes } from "./watch.ts";

/**
 * A sandbox whose program has ended goes on being called running. Three minutes of silence are the end of
 * one; one whose gate has said goodbye takes a place in its pool until it is deleted.
 */
export const UNTOLD_ENDS = { silenceMs: 180_000, leavingMs: 3_000 };

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
  /**
   * UID of the executor that the record of a task names; null when there is none, or it names none. Asked
   * where several sandboxes are of one name. Absent: nobody keeps records.
   */
  recordedUid?(task: TaskId, call: Call): Promise<string | null>;
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
  const remains = createRemains(options);
  const pace = createPace({
    pool: options.pool,
    clock,
    logger,
    perSecond: options.createsPerSecond ?? 2,
  });
  /** Which sandbox a create has given out, for as long as it is there. */
  const given = new Map<ExecutorName, string>();
  /**
   * By name: what is decided about several sandboxes holds until it is done. And the server merges
   * metadata without a lock: of two PATCHes at one time one may undo the other (measured on 1.1.1).
   */
  const turns = createKeyedMutex();

  const sightings = createSightings({
    ...options,
    logger,
    remains,
    given,
    turns,
    recordedUid: async (task, call) => await options.recordedUid?.(task, call) ?? null,
  });
  const { lookUp } = sightings;
  /** Names of which the last list had several. */
  let several: readonly ExecutorName[] = [];
  const seen = (sandbox: Sandbox) => executorOf(sandbox, prefix);

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
    let found = await sightings.find(name, call);
    // A create that nobody waits for any more may be about to show.
    for (let looks = 1; found === undefined && await creating.settled(name, call); looks++) {
      found = await sightings.find(name, call);
      if (found !== undefined || looks < MAX_LOOKS) continue;
      const why = "it is being made, and the server has not answered yet";
      throw new BackendError("unavailable", `Find executor "${name}": ${why}`);
    }
    if (found === undefined) return remains.of(name);
    remains.see(found);
    // Of one that goes away after its start has failed, that failure is told.
    return found.state === "Stopping" ? remains.of(name) ?? seen(found) : seen(found);
  };

  return {
    name: "vm",
    untoldEnds: UNTOLD_ENDS,
    bindsForGood: true,
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
      const bind = async () => {
        const sandbox = await sightings.find(name, call);
        if (sandbox === undefined || sandbox.id !== uid || sandbox.state === "Stopping") {
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
        if (await api.patch(uid, bound, call)) return;
        throw new BackendError("conflict", `${action}: it is gone`);
      };
      return read(action, call, () => turns.run(name, call.signal, bind));
    },
    markTerminal({ name, uid }, call) {
      return read(`Mark executor "${name}"`, call, async () => {
        const marked = { [labels.terminal]: "true" };
        await turns.run(name, call.signal, () => api.patch(uid, marked, call));
      });
    },
    list: (call) =>
      read("List executors", call, async () => {
        const sighted = await sightings.list(call);
        several = sighted.several;
        return sighted.executors;
      }),
    tidy(call) {
      const names = several;
      several = [];
      return read("Delete second sandboxes", call, () => sightings.sweep(names, call));
    },
    watch: ({ signal }): AsyncIterable<ExecutorChange> =>
      pollSandboxes({
        list: () =>
          read("Watch executors", { signal }, async () =>
            (await sightings.list({ signal })).executors),
        find: (name) =>
          read(`Find executor "${name}"`, { signal }, () =>
            find(name, { signal })),
        made: () => given.keys(),
        pollMs: options.pollMs ?? 5_000,
        clock,
        logger,
      }, signal),
    delete({ name, uid }, call) {
      const remove = async () => {
        const group = await lookUp(name, call);
        const own = group.find(({ id }) => id === uid);
        // Its duplicates first: once it is gone nobody could tell them from others.
        for (const { id } of own === undefined ? [] : spareOf(group, own, prefix)) {
          guard();
          await api.delete(id, call);
        }
        guard();
        // Also one that the list lacks, which comes from a cache.
        if (await api.delete(uid, call)) {
          pace.freed();
          creating.undone(name);
        }
        remains.forget({ name, uid });
        if (given.get(name) === uid) given.delete(name);
      };
      return read(`Delete executor "${name}"`, call, () => turns.run(name, call.signal, remove));
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

/** A second apart: others wait for this. */
const MAX_LOOKS = 10;

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
