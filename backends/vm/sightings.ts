import type { Call, Executor } from "../../controller/backend.ts";
import {
  type ExecutorName,
  type Instance,
  type TaskId,
  taskIdOf,
} from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { KeyedMutex } from "../../lib/keyed_mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import { groupsOf, keptOf, spareOf } from "./duplicates.ts";
import type { Remains } from "./remains.ts";
import { byAge, type Sandbox, SandboxError, type Sandboxes } from "./sandboxes.ts";
import { executorOf, nameOf, selectorOf } from "./status.ts";

/**
 * Which sandboxes are there, and which of them is an executor. Every method rejects with what the server
 * or the records have met, or with the signal's reason.
 */
export interface Sightings {
  /** Sandboxes of that name, whoever made them, oldest first. */
  lookUp(name: ExecutorName, call: Call): Promise<readonly Sandbox[]>;
  /** The one that is the executor of that name; undefined when there is surely none. */
  find(name: ExecutorName, call: Call): Promise<Sandbox | undefined>;
  /** Executors of all names, those included of which only the end is left. */
  list(call: Call): Promise<Sighted>;
  /**
   * Deletes those that one assignment has too many of, by a create whose answer was lost. They are looked
   * at again, because a list is old, and one of them may have got its identity meanwhile. One that
   * cannot be deleted now is met by the next list.
   */
  sweep(several: readonly ExecutorName[], call: Call): Promise<void>;
}

/** What one list has shown. */
export interface Sighted {
  readonly executors: Executor[];
  /** Names that more than one sandbox has. */
  readonly several: readonly ExecutorName[];
}

/** What {@link createSightings} needs. */
export interface SightingsDeps {
  readonly api: Pick<Sandboxes, "list" | "get" | "delete">;
  readonly prefix: string;
  readonly instance: Instance;
  readonly remains: Remains;
  /** Which sandbox a create has given out, for as long as it is there. */
  readonly given: Map<ExecutorName, string>;
  readonly turns: KeyedMutex;
  readonly logger: Logger;
  guard(): void;
  /** See `VmBackendOptions`. */
  recordedUid(task: TaskId, call: Call): Promise<string | null>;
}

/** Makes {@link Sightings}. */
export function createSightings(deps: SightingsDeps): Sightings {
  const { api, prefix, remains, given, turns, logger } = deps;
  const { labels } = metadataKeys(prefix);
  const all = { [labels.backend]: "vm" };

  const lookUp = async (name: ExecutorName, call: Call): Promise<readonly Sandbox[]> => {
    const selector = selectorOf(name, prefix);
    if (selector !== undefined) return await api.list(selector, call);
    const found = await api.get(name, call);
    return found === undefined || nameOf(found, prefix) !== name ? [] : [found];
  };

  const kept = async (group: readonly Sandbox[], call: Call): Promise<Sandbox | undefined> => {
    const [first, second] = group;
    if (first === undefined || second === undefined) return first;
    const isOurs = first.metadata[labels.instance] === deps.instance;
    const task = taskIdOf(first.metadata[labels.assignmentId] ?? "");
    const recorded = isOurs && task !== undefined ? await deps.recordedUid(task, call) : null;
    return keptOf(group, { prefix, given, recorded });
  };

  /** One that a list lacks: lists come from a cache of the server's, `get` asks what is behind it. */
  const stillThere = async (name: ExecutorName, call: Call): Promise<Sandbox | undefined> => {
    const last = remains.last(name);
    if (last === undefined) return undefined;
    const found = await api.get(last.id, call);
    if (found !== undefined && nameOf(found, prefix) === name) return found;
    if (remains.last(name)?.id === last.id) remains.vanished(name);
    return undefined;
  };

  return {
    lookUp,
    async find(name, call) {
      const group = await lookUp(name, call);
      const last = remains.last(name);
      const isMissing = last !== undefined && !group.some(({ id }) => id === last.id);
      const found = isMissing ? await stillThere(name, call) : undefined;
      return await kept(found === undefined ? group : [...group, found].sort(byAge), call);
    },
    async list(call) {
      const before = [...given];
      const sandboxes = await api.list(all, call);
      for (const last of remains.missing(sandboxes)) {
        const found = await stillThere(nameOf(last, prefix), call).catch((error) => {
          if (error instanceof SandboxError) return last; // Nobody can say that it is gone.
          throw error;
        });
        if (found !== undefined) sandboxes.push(found);
      }
      const ids = new Set(sandboxes.map(({ id }) => id));
      for (const [name, id] of before) if (!ids.has(id)) given.delete(name);
      const groups = groupsOf(sandboxes.sort(byAge), prefix);
      const best = await Promise.all(groups.map((group) => kept(group, call)));
      const found = best.filter((sandbox) => sandbox !== undefined);
      found.forEach(remains.see);
      const there = found.map((sandbox) => executorOf(sandbox, prefix));
      const names = new Set(there.map(({ name }) => name));
      const gone = remains.all().filter(({ name }) => !names.has(name));
      const several = groups.filter(({ length }) => length > 1).flatMap(([first]) => first ?? []);
      return {
        executors: [...there, ...gone],
        several: several.map((sandbox) => nameOf(sandbox, prefix)),
      };
    },
    async sweep(several, call) {
      for (const name of several) {
        try {
          await turns.run(name, call.signal, async () => {
            const group = await lookUp(name, call);
            const best = await kept(group, call);
            for (const { id } of best === undefined ? [] : spareOf(group, best, prefix)) {
              deps.guard();
              logger.warn("a second sandbox of one assignment is deleted", { executor: id });
              await api.delete(id, call);
            }
          });
        } catch (error) {
          if (!(error instanceof SandboxError)) throw error;
          logger.warn("a second sandbox of one assignment stays", { executor: name, error });
        }
      }
    },
  };
}
