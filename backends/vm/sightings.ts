import type { Call, Executor } from "../../controller/backend.ts";
import type { ExecutorName, Instance, TaskId } from "../../controller/model/ids.ts";
import type { KeyedMutex } from "../../lib/keyed_mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import { keptOf, spareOf } from "./duplicates.ts";
import type { MetadataCodec } from "./metadata_codec.ts";
import { byAge, type Sandbox, SandboxError, type Sandboxes } from "./sandboxes.ts";
import { executorOf } from "./status.ts";
import type { Tombstones } from "./tombstones.ts";

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
  /** Deletes the executor, and before it those that it has too many of. False when it was not there. */
  remove(executor: Pick<Executor, "name" | "uid">, call: Call): Promise<boolean>;
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
  readonly codec: MetadataCodec;
  readonly instance: Instance;
  readonly tombstones: Tombstones;
  /** Which sandbox a create has handed out, for as long as it is there. */
  readonly handedOut: Map<ExecutorName, string>;
  readonly turns: KeyedMutex;
  readonly logger: Logger;
  guard(): void;
  /** See `VmBackendOptions`. */
  recordedUid(task: TaskId, call: Call): Promise<string | null>;
}

/** Makes {@link Sightings}. */
export function createSightings(deps: SightingsDeps): Sightings {
  const { api, codec, tombstones, handedOut, turns, logger } = deps;

  const lookUp = async (name: ExecutorName, call: Call): Promise<readonly Sandbox[]> => {
    const selector = codec.selectorOf(name);
    if (selector !== undefined) return await api.list(selector, call);
    const found = await api.get(name, call);
    return found === undefined || codec.nameOf(found) !== name ? [] : [found];
  };

  const kept = async (group: readonly Sandbox[], call: Call): Promise<Sandbox | undefined> => {
    const [first, second] = group;
    if (first === undefined || second === undefined) return first;
    const task = codec.isOf(first, deps.instance) ? codec.taskOf(first) : undefined;
    const recorded = task === undefined ? null : await deps.recordedUid(task, call);
    return keptOf(group, { codec, handedOut, recorded });
  };

  /** One that a list lacks: lists come from a cache of the server's, `get` asks what is behind it. */
  const stillThere = async (name: ExecutorName, call: Call): Promise<Sandbox | undefined> => {
    const last = tombstones.last(name);
    if (last === undefined) return undefined;
    const found = await api.get(last.id, call);
    if (found !== undefined && codec.nameOf(found) === name) return found;
    if (tombstones.last(name)?.id === last.id) tombstones.vanished(name);
    return undefined;
  };

  /** Deletes those of a group that the executor has too many of. */
  const deleteSpare = async (group: readonly Sandbox[], executor: Sandbox, call: Call) => {
    for (const { id } of spareOf(group, executor, codec)) {
      deps.guard();
      logger.warn("a second sandbox of one assignment is deleted", { executor: id });
      await api.delete(id, call);
    }
  };

  return {
    lookUp,
    async find(name, call) {
      const group = await lookUp(name, call);
      const last = tombstones.last(name);
      const isMissing = last !== undefined && !group.some(({ id }) => id === last.id);
      const found = isMissing ? await stillThere(name, call) : undefined;
      return await kept(found === undefined ? group : [...group, found].sort(byAge), call);
    },
    async list(call) {
      const before = [...handedOut];
      const sandboxes = await api.list(codec.oursSelector, call);
      for (const last of tombstones.missing(sandboxes)) {
        const found = await stillThere(codec.nameOf(last), call).catch((error) => {
          if (error instanceof SandboxError) return last; // Nobody can say that it is gone.
          throw error;
        });
        if (found !== undefined) sandboxes.push(found);
      }
      const ids = new Set(sandboxes.map(({ id }) => id));
      for (const [name, id] of before) if (!ids.has(id)) handedOut.delete(name);
      const groups = [...Map.groupBy(sandboxes.sort(byAge), codec.nameOf).values()];
      const best = await Promise.all(groups.map((group) => kept(group, call)));
      const found = best.filter((sandbox) => sandbox !== undefined);
      found.forEach(tombstones.see);
      const there = found.map((sandbox) => executorOf(sandbox, codec));
      const names = new Set(there.map(({ name }) => name));
      const gone = tombstones.all().filter(({ name }) => !names.has(name));
      const several = groups.filter(({ length }) => length > 1).flatMap(([first]) => first ?? []);
      return {
        executors: [...there, ...gone],
        several: several.map((sandbox) => codec.nameOf(sandbox)),
      };
    },
    async sweep(several, call) {
      for (const name of several) {
        try {
          await turns.run(name, call.signal, async () => {
            const group = await lookUp(name, call);
            const best = await kept(group, call);
            if (best !== undefined) await deleteSpare(group, best, call);
          });
        } catch (error) {
          if (!(error instanceof SandboxError)) throw error;
          logger.warn("a second sandbox of one assignment stays", { executor: name, error });
        }
      }
    },
    async remove({ name, uid }, call) {
      const group = await lookUp(name, call);
      const own = group.find(({ id }) => id === uid);
      // Its duplicates first: once it is gone nobody could tell them from others.
      if (own !== undefined) await deleteSpare(group, own, call);
      deps.guard();
      // Also one that the list lacks, which comes from a cache.
      return await api.delete(uid, call);
    },
  };
}
