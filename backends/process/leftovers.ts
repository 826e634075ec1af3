import type { ExecutorName } from "../../controller/model/ids.ts";
import { removeIfThere, statIfThere } from "../../lib/if_there.ts";
import {
  type Creator,
  discardFolder,
  listFolders,
  listHalfway,
  readCreator,
  readFolder,
  type Unfinished,
} from "./folder.ts";
import { hiddenName, type Owner, ownerOfHidden } from "./hidden.ts";
import type { Making } from "./making.ts";
import { isAlive } from "./proc.ts";
import { endProcesses } from "./processes.ts";

/**
 * What creates and deletes left when their controller was killed in the middle of them, or when they
 * could not undo what they had done. Nobody sees it as an executor, and its assignment may have ended
 * since, so that no create of that name comes and takes it over: it has to be looked for.
 */

const SWEEP_MS = 1000;
const FAILED_MS = 10_000;
/** For one leftover; whoever waits for the sweep is not kept longer. */
const LIMIT_MS = 5000;
/** Hidden folders whose names do not say who is at them are left alone for so long. */
const FRESH_MS = 60_000;

/** True if nobody is at work on what `owner` made, but for `self`, which has to know by itself. */
export async function isAbandoned(
  self: Creator,
  owner: Owner & { readonly bootId?: string } | undefined,
): Promise<boolean> {
  if (owner === undefined || owner.instance === self.instance) return true;
  if (owner.bootId !== undefined && owner.bootId !== self.bootId) return true;
  return !(await isAlive(owner.process));
}

/** Frees the name at once and removes the folder; no sweep gets in between. Absent is success. */
export async function discard(making: Making, name: string): Promise<void> {
  const { root, creator, underway } = making;
  const grave = hiddenName("gone", creator, making.randomId());
  underway.add(grave);
  try {
    await discardFolder(root, { name, grave });
  } finally {
    underway.delete(grave);
  }
}

/**
 * Takes an abandoned folder without meta.json away: its processes, its identity and then, so that the
 * rest is found again when this fails or is the last that a controller does, its name. To be called
 * while `making.underway` has the name.
 */
export async function discardAbandoned(
  making: Making,
  leftover: { readonly name: string; readonly state: Unfinished; readonly signal: AbortSignal },
): Promise<void> {
  const { name, state: { creator, userId }, signal } = leftover;
  // In an earlier boot that user may have been another's.
  if (creator?.bootId === making.creator.bootId) {
    const target = { folder: `${making.root}/${name}`, leader: null, userId };
    await endProcesses(target, { graceMs: 0, clock: making.clock, signal });
  }
  await making.identity.unbind(name as ExecutorName, { signal });
  await discard(making, name);
}

/**
 * Removes folders that were being filled or removed by those who are gone. One that cannot be removed
 * keeps none of the others; rejects with its error in the end.
 */
export async function sweepHidden(making: Making): Promise<void> {
  const names = await listHalfway(making.root);
  const results = await Promise.allSettled(names.map((name) => sweepOneHidden(making, name)));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

async function sweepOneHidden(making: Making, name: string): Promise<void> {
  const { root, creator, underway } = making;
  if (underway.has(name)) return;
  const folder = `${root}/${name}`;
  const owner = ownerOfHidden(name) ?? await readCreator(folder);
  if (owner === undefined && await isFresh(folder)) return;
  if (await isAbandoned(creator, owner)) await removeIfThere(folder, { recursive: true });
}

async function isFresh(folder: string): Promise<boolean> {
  const info = await statIfThere(folder);
  return Date.now() - (info?.mtime?.getTime() ?? 0) < FRESH_MS;
}

/** Looks for leftovers again and again. */
export interface Sweeper {
  /**
   * Removes what is left behind, at most once a second (ten after a failure, which is logged); takes
   * up to 5 s when an identity cannot be taken away. Rejects with the signal's reason, or when
   * the root cannot be read.
   */
  sweep(making: Making, signal: AbortSignal): Promise<void>;
}

/** Makes a {@link Sweeper}. */
export function createSweeper(): Sweeper {
  let next = -Infinity;
  return {
    async sweep(making, signal) {
      const { clock, logger } = making;
      if (clock.monotonic() < next) return;
      next = clock.monotonic() + SWEEP_MS;
      using limit = clock.timeout(LIMIT_MS);
      const bounded = AbortSignal.any([signal, limit.signal]);
      const names = await listFolders(making.root);
      const results = await Promise.allSettled([
        sweepHidden(making),
        ...names.map((name) => sweepOne(making, name, bounded)),
      ]);
      signal.throwIfAborted();
      for (const result of results) {
        if (result.status === "fulfilled") continue;
        next = clock.monotonic() + FAILED_MS;
        logger.warn("what an executor that was not made left cannot be removed", {
          error: result.reason,
        });
      }
    },
  };
}

async function sweepOne(making: Making, name: string, signal: AbortSignal): Promise<void> {
  const { underway, sweeping, logger } = making;
  // A create, or the sweep of another watch, may have begun meanwhile.
  if (await readLeftover(making, name) === undefined || underway.has(name)) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  underway.add(name);
  sweeping.set(name, promise);
  try {
    // It may even have ended: what stands there now counts.
    const state = await readLeftover(making, name);
    if (state === undefined) return;
    await discardAbandoned(making, { name, state, signal });
    logger.info("removed what an executor that was not made left", { executor: name });
  } finally {
    underway.delete(name);
    sweeping.delete(name);
    resolve();
  }
}

async function readLeftover(making: Making, name: string): Promise<Unfinished | undefined> {
  const state = await readFolder(`${making.root}/${name}`);
  if (state?.kind !== "unfinished") return undefined;
  const ours = state.creator === undefined || state.creator.backend === making.backend;
  return ours && await isAbandoned(making.creator, state.creator) ? state : undefined;
}
