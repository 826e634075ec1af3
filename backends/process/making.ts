import { BackendError, type ExecutorSpec } from "../../controller/backend.ts";
import type { BackendName } from "../../controller/model/ids.ts";
import { abortable } from "../../lib/abortable.ts";
import { claimFolder, type Creator, giveTo, readFolder, writeMeta } from "./folder.ts";
import { hiddenName } from "./hidden.ts";
import { discard, discardAbandoned, isAbandoned } from "./leftovers.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Meta } from "./meta.ts";
import type { ProcessIdentity } from "./process_identity.ts";
import { allocateUser, type UserIds } from "./users.ts";
import { exportScript, startWrapper, type Wrapper } from "./wrapper.ts";

const UNBIND_MS = 5000;

/** What every executor of one backend is made of. */
export interface ExecutorMeans {
  /** The identity gate: program and arguments. Its user must be able to read it. */
  readonly command: readonly string[];
  /** Goes below the launch environment: PATH and what the program itself needs. HOME and TMPDIR are the executor's own. */
  readonly environment: Readonly<Record<string, string>>;
  readonly identity: ProcessIdentity;
  /** Started as root: a user of its own for each executor. Null: all run as ourselves. */
  readonly userIds: UserIds | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What making an executor needs. */
export interface Making extends ExecutorMeans {
  readonly backend: BackendName;
  readonly root: string;
  readonly graceMs: number;
  readonly creator: Creator;
  /** 128 random bits in hex. */
  readonly randomId: () => string;
  /** Names of folders, hidden ones too, that this backend object is making or removing now. */
  readonly underway: Set<string>;
  /** Names of those that are leftovers, with the end of their removal. */
  readonly sweeping: Map<string, Promise<void>>;
  /** Called when an executor has changed: somebody may be waiting for that. */
  readonly onChanged: () => void;
}

/**
 * Makes an executor. Steps, each of which may be the last before a crash:
 *
 * 1. claim the name (atomic); after a crash the folder counts as absent, until it is taken over by
 *    the next create of that name or swept away
 * 2. user, Workload API socket, wrapper without environment; after a crash the wrapper ends by itself
 * 3. meta.json: the executor exists; after a crash it is seen as ended, never started
 * 4. the environment goes through the pipe: it runs
 *
 * A failure or an abort on the way undoes everything; what cannot be undone is left as after a crash,
 * and swept away. Throws {@link BackendError} `conflict` when
 * the name is taken.
 */
export async function makeExecutor(
  making: Making,
  options: { readonly spec: ExecutorSpec; readonly signal: AbortSignal },
): Promise<Meta> {
  const { spec, signal } = options;
  signal.throwIfAborted();
  const sweep = making.sweeping.get(spec.name);
  if (sweep !== undefined) await abortable(sweep, signal);
  if (making.underway.has(spec.name)) throw taken(spec.name);
  making.underway.add(spec.name);
  try {
    const folder = await claim(making, { name: spec.name, signal });
    let wrapper: Wrapper | undefined;
    try {
      const userId = await userFor(making, { name: spec.name, folder, signal });
      const environment = await environmentOf(making, { spec, folder, userId, signal });
      wrapper = await startWrapper(folder, { command: making.command, userId });
      wrapper.ended.then(making.onChanged);
      signal.throwIfAborted();
      const meta = metaOf(making, { spec, userId, process: wrapper.process });
      await writeMeta(folder, meta);
      await wrapper.launch(environment);
      return meta;
    } catch (error) {
      await undo(making, { name: spec.name, wrapper });
      throw error;
    }
  } finally {
    making.underway.delete(spec.name);
  }
}

function taken(name: string): BackendError {
  return new BackendError("conflict", `Make executor "${name}": the name is taken`);
}

async function claim(
  making: Making,
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
): Promise<string> {
  const { root, creator } = making;
  const folder = await claimOnce(making, name);
  if (folder !== undefined) return folder;
  const state = await readFolder(`${root}/${name}`);
  if (state?.kind !== "unfinished") throw taken(name);
  // What this object itself left there cannot be underway: that was checked before.
  if (!await isAbandoned(creator, state.creator)) throw taken(name);
  await discardAbandoned(making, { name, state, signal });
  const second = await claimOnce(making, name);
  if (second === undefined) throw taken(name);
  return second;
}

async function claimOnce(making: Making, name: string): Promise<string | undefined> {
  const { root, creator, underway } = making;
  const id = making.randomId();
  const draft = hiddenName("new", creator, id);
  underway.add(draft);
  try {
    return await claimFolder(root, { name, creator, id });
  } finally {
    underway.delete(draft);
  }
}

async function userFor(
  { root, userIds, clock }: Making,
  { name, folder, signal }: {
    readonly name: string;
    readonly folder: string;
    readonly signal: AbortSignal;
  },
): Promise<number | null> {
  if (userIds === null) return null;
  const userId = await allocateUser(root, { name, userIds, clock, signal });
  await giveTo(folder, userId);
  return userId;
}

async function environmentOf(
  making: Making,
  options: {
    readonly spec: ExecutorSpec;
    readonly folder: string;
    readonly userId: number | null;
    readonly signal: AbortSignal;
  },
): Promise<Readonly<Record<string, string>>> {
  const { spec, folder, userId, signal } = options;
  const environment = {
    CI_GRACE_SECONDS: String(Math.max(1, Math.floor(making.graceMs / 1000))),
    ...making.environment,
    ...spec.environment,
    HOME: `${folder}/home`,
    TMPDIR: `${folder}/tmp`,
    SPIFFE_ENDPOINT_SOCKET: await making.identity.endpoint(spec.name, userId, { signal }),
  };
  try {
    exportScript(environment);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : "unknown error";
    throw new BackendError("invalid", `Make executor "${spec.name}": ${why}`, {
      retryable: false,
      cause,
    });
  }
  return environment;
}

function metaOf(
  making: Making,
  options: {
    readonly spec: ExecutorSpec;
    readonly userId: number | null;
    readonly process: Meta["process"];
  },
): Meta {
  const { spec, userId, process } = options;
  return {
    name: spec.name,
    backend: making.backend,
    uid: `${process.pid}-${process.startTime}-${making.randomId()}`,
    process,
    bootId: making.creator.bootId,
    userId,
    createdAt: making.clock.now(),
    metadata: spec.metadata,
  };
}

/** After a failure: nothing runs, nothing is bound, the name is free. Otherwise a sweep goes on. */
async function undo(
  making: Making,
  { name, wrapper }: { readonly name: ExecutorSpec["name"]; readonly wrapper: Wrapper | undefined },
): Promise<void> {
  await wrapper?.abandon(making.clock);
  using limit = making.clock.timeout(UNBIND_MS);
  try {
    await making.identity.unbind(name, { signal: limit.signal });
    await discard(making, name);
  } catch (error) {
    making.logger.warn("what an executor that was not made left is still there", {
      executor: name,
      error,
    });
  }
}
