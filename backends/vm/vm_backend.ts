import {
  type Backend,
  BackendError,
  type Call,
  type Executor,
  type ExecutorChange,
  type ExecutorSpec,
} from "../../controller/backend.ts";
import type { ExecutorName, Instance, TaskId } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import { createKeyedMutex } from "../../lib/keyed_mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomHex } from "../../lib/random_hex.ts";
import { createBindIdentity } from "./bind_identity.ts";
import { createCreateLimiter } from "./create_limiter.ts";
import { EXECUTOR_ENTRYPOINT } from "./entrypoint.ts";
import { toBackendError, toReadError } from "./errors.ts";
import { createMetadataCodec, type MetadataCodec } from "./metadata_codec.ts";
import { createSandboxCreator } from "./sandbox_creator.ts";
import type { NewSandbox, Sandbox, Sandboxes } from "./sandboxes.ts";
import { createSightings } from "./sightings.ts";
import { executorOf } from "./status.ts";
import { createTombstones } from "./tombstones.ts";
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

const CREATES_PER_SECOND = 2;
const DOUBT_MS = 20_000;
const POLL_MS = 5_000;

/**
 * Executors as sandboxes of an OpenSandbox pool. The server names sandboxes itself and makes one for
 * each request, so that ours are found by metadata. It has no watch: one list at an interval stands for
 * all. What is true of an executor is read from the server each time; kept here are creates without an
 * answer, and ends that the server does not tell (`tombstones.ts`).
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
  const codec = createMetadataCodec(prefix);
  const tombstones = createTombstones({ ...options, codec });
  const limiter = createCreateLimiter({
    pool: options.pool,
    perSecond: options.createsPerSecond ?? CREATES_PER_SECOND,
    clock,
    logger,
  });
  /** Which sandbox a create has handed out, for as long as it is there. */
  const handedOut = new Map<ExecutorName, string>();
  /**
   * By name: what is decided about several sandboxes holds until it is done. And the server merges
   * metadata without a lock: of two PATCHes at one time one may undo the other (measured on 1.1.1).
   */
  const turns = createKeyedMutex();

  const sightings = createSightings({
    ...options,
    codec,
    logger,
    tombstones,
    handedOut,
    turns,
    recordedUid: async (task, call) => await options.recordedUid?.(task, call) ?? null,
  });
  /** Names of which the last list had several. */
  let several: readonly ExecutorName[] = [];
  const toExecutor = (sandbox: Sandbox) => executorOf(sandbox, codec);

  const creator = createSandboxCreator({
    api,
    limiter,
    clock,
    doubtMs: options.doubtMs ?? DOUBT_MS,
    lookUp: sightings.lookUp,
    randomId: options.randomId ?? (() => randomHex(16)),
    guard,
  });

  const bind = createBindIdentity({ api, codec, prefix, sightings, guard });

  const read = <T>(action: string, { signal }: Call, run: () => Promise<T>) =>
    runCall(run, signal, (error) => toReadError(action, error));

  const look = async (name: ExecutorName, call: Call): Promise<Sandbox | undefined> => {
    for (let looks = 0;; looks++) {
      // A create that nobody waits for any more. Asked before the look: what it makes may come right after that.
      const making = creator.underway(name);
      const found = await sightings.find(name, call);
      if (found !== undefined || making === undefined) return found;
      if (looks >= MAX_LOOKS) {
        const why = "it is being made, and the server has not answered yet";
        throw new BackendError("unavailable", `Find executor "${name}": ${why}`);
      }
      await making.settled(call);
    }
  };

  const find = async (name: ExecutorName, call: Call): Promise<Executor | undefined> => {
    const found = await look(name, call);
    if (found === undefined) return tombstones.of(name);
    tombstones.see(found);
    // Of one that goes away after its start has failed, that failure is told.
    const failed = found.state === "Stopping" ? tombstones.of(name) : undefined;
    return failed ?? toExecutor(found);
  };

  return {
    name: "vm",
    untoldEnds: UNTOLD_ENDS,
    bindsForGood: true,
    find: (name, call) => read(`Find executor "${name}"`, call, () => find(name, call)),
    create(spec, call) {
      const action = `Make executor "${spec.name}"`;
      return runCall(
        async () => {
          if (tombstones.of(spec.name) !== undefined) {
            throw new BackendError("conflict", `${action}: what is left of another one is there`);
          }
          const made = await creator.create(spec, newSandbox(spec, options, codec), call);
          if ("uid" in made) {
            tombstones.add(made);
            return made;
          }
          handedOut.set(spec.name, made.id);
          tombstones.see(made);
          return toExecutor(made);
        },
        call.signal,
        (error) => toBackendError(action, error),
      );
    },
    bindIdentity(executor, assignment, call) {
      const { name } = executor;
      const work = () => bind(executor, assignment, call);
      const action = `Bind the identity of executor "${name}"`;
      return read(action, call, () => turns.run(name, call.signal, work));
    },
    markTerminal({ name, uid }, call) {
      const work = async () => void await api.patch(uid, codec.terminal, call);
      return read(`Mark executor "${name}"`, call, () => turns.run(name, call.signal, work));
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
        made: () => handedOut.keys(),
        pollMs: options.pollMs ?? POLL_MS,
        clock,
        logger,
      }, signal),
    delete(executor, call) {
      const { name, uid } = executor;
      const work = async () => {
        if (await sightings.remove(executor, call)) {
          limiter.freed();
          creator.undone(name);
        }
        tombstones.forget(executor);
        if (handedOut.get(name) === uid) handedOut.delete(name);
      };
      return read(`Delete executor "${name}"`, call, () => turns.run(name, call.signal, work));
    },
  };
}

/** What the server is asked for. */
function newSandbox(
  spec: ExecutorSpec,
  options: VmBackendOptions,
  codec: MetadataCodec,
): NewSandbox {
  return {
    pool: options.pool,
    entrypoint: EXECUTOR_ENTRYPOINT,
    environment: { ...spec.environment, SPIFFE_ENDPOINT_SOCKET: options.endpointSocket },
    metadata: codec.encode(spec.metadata),
    timeoutMs: options.timeoutMs,
  };
}

/** A second apart: others wait for this. */
const MAX_LOOKS = 10;

/** Runs one call of the port: what it throws is the signal's reason, or what `judge` makes of it. */
async function runCall<T>(
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
