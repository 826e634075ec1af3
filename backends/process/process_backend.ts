import {
  type Backend,
  BackendError,
  type Executor,
  type ExecutorChange,
} from "../../controller/backend.ts";
import type { BackendName, ExecutorName } from "../../controller/model/ids.ts";
import { randomHex } from "../../lib/random_hex.ts";
import { boundOutput } from "./endings.ts";
import { type Creator, setMarker } from "./folder.ts";
import { createSweeper, discard, sweepHidden } from "./leftovers.ts";
import { look, lookAtAll, type Seen } from "./look.ts";
import { type ExecutorMeans, makeExecutor, type Making } from "./making.ts";
import { prefixOf } from "./meta.ts";
import { createPreparedCalls } from "./prepared_calls.ts";
import { bootId, self } from "./proc.ts";
import { endProcesses } from "./processes.ts";
import { prepareRoot } from "./users.ts";
import { createBell, pollChanges } from "./watch.ts";

/** What process executors are made of. */
export interface ProcessBackendOptions extends ExecutorMeans {
  readonly name: BackendName;
  /** Holds one folder per executor. With `userIds`, every directory above it must be open to others (`o+x`). */
  readonly directory: string;
  /** From SIGTERM to SIGKILL when an executor is deleted; default 5 s. The gate is told. */
  readonly graceMs?: number;
  /** How often {@link Backend.watch} looks; default 250 ms. */
  readonly pollMs?: number;
  /** 128 random bits in hex. */
  readonly randomId?: () => string;
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
  const sweeping = new Map<string, Promise<void>>();
  const sweeper = createSweeper();
  const instance = randomId();

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
      sweeping,
      onChanged: bell.ring,
    };
    await sweepHidden(making);
    return making;
  };

  const calls = createPreparedCalls(prepare);
  const { call } = calls;

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
        const { spiffeId } = assignment.identity;
        refuseOther(seen.executor, spiffeId);
        await identity.bind({ executor: name, userId: seen.target.userId, spiffeId }, { signal });
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
          await sweeper.sweep(making, watching);
          return executors;
        });
      return pollChanges(lookAndTidy, { bell, pollMs, clock, logger, signal });
    },
    delete({ name, uid }, { signal }) {
      return call(`Delete executor "${name}"`, signal, async (making) => {
        const seen = await look(making, name);
        // Another one has taken the name since: exactly this one is gone.
        if (seen !== undefined && seen.executor.uid !== uid) return;
        await remove(making, { name, seen, signal });
      });
    },
    [Symbol.asyncDispose]: () => calls[Symbol.asyncDispose](),
  };
}

/** The name becomes a folder. */
function checkName(name: string): void {
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return;
  throw new BackendError("invalid", `Make executor ${JSON.stringify(name)}: no DNS label`, {
    retryable: false,
  });
}

/** An executor gets the SPIFFE ID that it was made for, and no other. */
function refuseOther({ name, metadata }: Executor, spiffeId: string): void {
  if (metadata.annotations[`${prefixOf(metadata)}/spiffe-id`] === spiffeId) return;
  throw new BackendError(
    "invalid",
    `Bind the identity of executor "${name}": it was made for another SPIFFE ID`,
    { retryable: false },
  );
}

/** Ends the executor, then gives back what it had: identity, user, name. */
async function remove(
  making: Making,
  executor: {
    readonly name: ExecutorName;
    readonly seen: Seen | undefined;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { name, seen, signal } = executor;
  const { graceMs, clock } = making;
  if (seen !== undefined) {
    await setMarker(seen.target.folder, "deleting");
    making.onChanged();
    await endProcesses(seen.target, { graceMs, clock, signal });
  }
  // A new one of that name is being made: the identity that is there is its own.
  if (seen === undefined && making.underway.has(name)) return;
  await making.identity.unbind(name, { signal });
  if (seen !== undefined) await discard(making, name);
  making.onChanged();
}
