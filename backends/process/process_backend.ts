import {
  type Backend,
  BackendError,
  type Executor,
  type ExecutorChange,
} from "../../controller/backend.ts";
import type { BackendName, ExecutorName } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomHex } from "../../lib/random_hex.ts";
import { boundOutput, endingOf } from "./endings.ts";
import { type Creator, discardFolder, listFolders, setMarker, sweepHidden } from "./folder.ts";
import { isAbandoned, makeExecutor, type Making, readMade } from "./making.ts";
import { prefixOf, withTerminal } from "./meta.ts";
import { bootId, self } from "./proc.ts";
import type { ProcessIdentity } from "./process_identity.ts";
import { endProcesses, type Target } from "./processes.ts";
import { prepareRoot, type UserIds } from "./users.ts";
import { createBell, pollChanges } from "./watch.ts";

/** What process executors are made of. */
export interface ProcessBackendOptions {
  readonly name: BackendName;
  /** Holds one folder per executor. With `userIds`, every directory above it must be open to others (`o+x`). */
  readonly directory: string;
  /** The identity gate: program and arguments. Its user must be able to read it. */
  readonly command: readonly string[];
  /** Goes below the launch environment: PATH and what the program itself needs. HOME and TMPDIR are the executor's own. */
  readonly environment: Readonly<Record<string, string>>;
  readonly identity: ProcessIdentity;
  /** Started as root: a user of its own for each executor. Null: all run as ourselves. */
  readonly userIds: UserIds | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From SIGTERM to SIGKILL when an executor is deleted; default 5 s. The gate is told. */
  readonly graceMs?: number;
  /** How often {@link Backend.watch} looks; default 250 ms. */
  readonly pollMs?: number;
  /** 128 random bits in hex. */
  readonly randomId?: () => string;
}

/** What a folder and the processes say about one executor, and how to get at it. */
interface Seen {
  readonly executor: Executor;
  readonly target: Target;
}

/**
 * Executors as child processes, each in a folder, session and (as root) user of its own. They outlive
 * the controller: everything that is known of them is read from disk and /proc each time, so that
 * a new object on the same directory knows all that the old one knew, exit codes included.
 *
 * ```
 *  create --> running --> ended ------+
 *                |                    +--> terminating --> gone (name and user id free)
 *                +--------------------+
 * ```
 * Disposing waits for calls under way and leaves executors alone. Linux only.
 */
export function createProcessBackend(options: ProcessBackendOptions): Backend & AsyncDisposable {
  const { name: backend, clock, identity, userIds } = options;
  const logger = options.logger.child({ backend });
  const { graceMs = 5000, pollMs = 250, randomId = () => randomHex(16) } = options;
  if (options.command.length === 0) {
    throw new TypeError("Cannot make executors: no command is given");
  }
  const bell = createBell();
  const underway = new Set<string>();
  const calls = new Set<Promise<unknown>>();
  const instance = randomId();
  let prepared: Promise<Making> | undefined;

  const prepare = async (): Promise<Making> => {
    const root = await prepareRoot(options.directory, userIds);
    const creator: Creator = { backend, instance, process: await self(), bootId: await bootId() };
    const making: Making = {
      backend,
      root,
      command: options.command,
      environment: options.environment,
      identity,
      userIds,
      graceMs,
      creator,
      clock,
      logger,
      randomId,
      underway,
      onEnded: bell.ring,
    };
    await sweepHidden(root, (other) => isAbandoned(making, { name: "", creator: other }));
    return making;
  };

  /** Prepared once; a failure is not kept. */
  const ready = (): Promise<Making> => {
    prepared ??= prepare().catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };

  const call = <T>(action: string, signal: AbortSignal, run: (making: Making) => Promise<T>) => {
    const result = (async () => {
      signal.throwIfAborted();
      try {
        return await run(await ready());
      } catch (error) {
        signal.throwIfAborted();
        throw toBackendError(action, error);
      }
    })();
    calls.add(result);
    const forget = () => void calls.delete(result);
    result.then(forget, forget);
    return result;
  };

  const look = async (making: Making, name: string): Promise<Seen | undefined> => {
    const folder = `${making.root}/${name}`;
    const state = await readMade(making, name);
    if (state === undefined) return undefined;
    const terminating = state.markers.has("deleting");
    const terminal = state.markers.has("terminal");
    if (state.kind === "unreadable") {
      const executor: Executor = {
        name: name as ExecutorName,
        uid: state.uid,
        phase: terminating ? "terminating" : "unreadable",
        metadata: { labels: {}, annotations: {} },
        createdAt: state.since,
        identityTarget: null,
        terminating,
        ended: null,
        terminal,
        node: null,
        waiting: null,
      };
      return { executor, target: { folder, leader: null, userId: state.userId } };
    }
    const { meta } = state;
    const sameBoot = meta.bootId === making.creator.bootId;
    const ended = await endingOf(folder, { process: meta.process, sameBoot });
    const executor: Executor = {
      name: name as ExecutorName,
      uid: meta.uid,
      phase: terminating ? "terminating" : ended === null ? "running" : "ended",
      metadata: terminal ? withTerminal(meta.metadata) : meta.metadata,
      createdAt: meta.createdAt,
      identityTarget: meta.userId === null ? name : String(meta.userId),
      terminating,
      ended,
      terminal,
      node: null,
      waiting: null,
    };
    return {
      executor,
      target: { folder, leader: sameBoot ? meta.process : null, userId: meta.userId },
    };
  };

  const lookAtAll = async (making: Making): Promise<Executor[]> => {
    const names = await listFolders(making.root);
    const all = await Promise.all(names.map((name) => look(making, name)));
    return all.flatMap((seen) => seen === undefined ? [] : [seen.executor]);
  };

  const remove = async (making: Making, name: ExecutorName, signal: AbortSignal) => {
    const seen = await look(making, name);
    if (seen !== undefined) {
      await setMarker(seen.target.folder, "deleting");
      bell.ring();
      await endProcesses(seen.target, { graceMs, clock, signal });
    }
    // A new one of that name is being made: the identity that is there is its own.
    if (seen === undefined && underway.has(name)) return;
    await identity.unbind(name, { signal });
    if (seen !== undefined) await discardFolder(making.root, { name, id: randomId() });
    bell.ring();
  };

  return {
    name: backend,
    find(name, { signal }) {
      return call(`Find executor "${name}"`, signal, async (making) => {
        return (await look(making, name))?.executor;
      });
    },
    create(spec, { signal }) {
      return call(`Make executor "${spec.name}"`, signal, async (making) => {
        checkName(spec.name);
        await makeExecutor(making, { spec, signal });
        bell.ring();
        const seen = await look(making, spec.name);
        if (seen === undefined) {
          throw new BackendError("unavailable", `Make executor "${spec.name}": gone at once`);
        }
        return seen.executor;
      });
    },
    bindIdentity({ name, uid }, assignment, { signal }) {
      return call(`Bind the identity of executor "${name}"`, signal, async (making) => {
        const seen = await look(making, name);
        if (seen === undefined || seen.executor.uid !== uid) {
          throw new BackendError("conflict", `Bind the identity of executor "${name}": it is gone`);
        }
        const { metadata } = seen.executor;
        const { spiffeId } = assignment.identity;
        const stated = metadata.annotations[`${prefixOf(metadata)}/spiffe-id`];
        if (stated !== spiffeId) {
          throw new BackendError(
            "invalid",
            `Bind the identity of executor "${name}": it was made for another SPIFFE ID`,
            { retryable: false },
          );
        }
        await identity.bind(
          { executor: name, userId: seen.target.userId, spiffeId },
          { signal },
        );
      });
    },
    markTerminal({ name, uid }, { signal }) {
      return call(`Mark executor "${name}"`, signal, async (making) => {
        const seen = await look(making, name);
        if (seen === undefined || seen.executor.uid !== uid || seen.executor.terminal) return;
        await setMarker(seen.target.folder, "terminal");
        bell.ring();
      });
    },
    list({ signal }) {
      return call("List executors", signal, lookAtAll);
    },
    watch({ signal }): AsyncIterable<ExecutorChange> {
      const lookAndTidy = (watching: AbortSignal) =>
        call("Watch executors", watching, async (making) => {
          const executors = await lookAtAll(making);
          for (const { name } of executors) await boundOutput(`${making.root}/${name}`);
          return executors;
        });
      return pollChanges(lookAndTidy, { bell, pollMs, clock, logger, signal });
    },
    delete({ name, uid }, { signal }) {
      return call(`Delete executor "${name}"`, signal, async (making) => {
        const seen = await look(making, name);
        // Another one has taken the name since: exactly this one is gone.
        if (seen !== undefined && seen.executor.uid !== uid) return;
        await remove(making, name, signal);
      });
    },
    async [Symbol.asyncDispose]() {
      while (calls.size > 0) await Promise.allSettled([...calls]);
    },
  };
}

/** The name becomes a folder. */
function checkName(name: string): void {
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return;
  throw new BackendError("invalid", `Make executor ${JSON.stringify(name)}: no DNS label`, {
    retryable: false,
  });
}

function toBackendError(action: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const why = error instanceof Error ? error.message : String(error);
  const refused = error instanceof Deno.errors.PermissionDenied ||
    error instanceof Deno.errors.NotCapable;
  return new BackendError(refused ? "refused" : "unavailable", `${action}: ${why}`, {
    cause: error,
  });
}
