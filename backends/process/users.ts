import { BackendError } from "../../controller/backend.ts";
import { closedFolder } from "../../lib/closed_folder.ts";
import { readStart } from "../../lib/foreign_file.ts";
import type { Clock } from "../../lib/clock.ts";
import { listFolders } from "./folder.ts";
import { isDead, listProcesses, ownerOf } from "./proc.ts";

/** Unix users that executors may be given, one each. */
export interface UserIds {
  readonly first: number;
  readonly count: number;
}

/** Where controllers of this machine tell each other which users they have given away. */
const REGISTRY = "/run/gitea-dynamic-runner-users";

/** Others hold the registry's lock for milliseconds; one that was frozen with it holds it for ever. */
const LOCK_POLL_MS = 20;

/** Below the root: the user that was given last. */
const LAST = ".last-user";

/**
 * Gives the executor in `<root>/<name>` a user that no other executor of this machine has and no
 * process runs as, and notes it in the folder. Only root may call this. Other controllers matter: an
 * executor's leftovers are ended by their user, so one user must never belong to two executors. They
 * are given in turn, so that what a job left in a folder open to all waits long for the next owner.
 * Throws {@link BackendError} `quota` when all are taken, or the signal's reason.
 */
export async function allocateUser(
  root: string,
  options: {
    readonly name: string;
    readonly userIds: UserIds;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly registry?: string;
  },
): Promise<number> {
  const { name, clock, signal, registry = REGISTRY } = options;
  const { first, count } = options.userIds;
  const folder = `${root}/${name}`;
  await openRegistry(registry);
  using lock = await Deno.open(`${registry}/lock`, { write: true, create: true, mode: 0o600 });
  while (!await lock.tryLock(true)) await clock.sleep(LOCK_POLL_MS, signal);
  const taken = await usersInUse(root);
  const last = Number.parseInt(await readStart(`${root}/${LAST}`, 16) ?? "", 10);
  const start = last >= first && last < first + count ? last + 1 - first : 0;
  for (let turn = 0; turn < count; turn++) {
    const userId = first + (start + turn) % count;
    const lease = `${registry}/${userId}`;
    if (taken.has(userId) || await isLeased(lease, userId)) continue;
    await Deno.writeTextFile(`${folder}/user`, `${userId}\n`, { mode: 0o600 });
    await Deno.writeTextFile(lease, folder, { mode: 0o600 });
    await Deno.writeTextFile(`${root}/${LAST}`, `${userId}\n`, { mode: 0o600 });
    return userId;
  }
  throw new BackendError(
    "quota",
    `Find a free user id: all of ${first} to ${first + count - 1} are in use`,
  );
}

/** A lease holds as long as the folder that it names is there with that user. */
async function isLeased(lease: string, userId: number): Promise<boolean> {
  const folder = await readStart(lease, 4096);
  if (folder === undefined || !folder.startsWith("/")) return false;
  return Number.parseInt(await readStart(`${folder}/user`, 16) ?? "", 10) === userId;
}

/** Users of the executors below `root`, and of everything that runs. */
async function usersInUse(root: string): Promise<Set<number>> {
  const taken = new Set<number>();
  for (const name of await listFolders(root)) {
    taken.add(Number.parseInt(await readStart(`${root}/${name}/user`, 16) ?? "", 10));
  }
  for (const stat of await listProcesses()) {
    const owner = isDead(stat) ? undefined : await ownerOf(stat.pid);
    if (owner !== undefined) taken.add(owner);
  }
  return taken;
}

/** A predictable name in a folder open to all: it must be ours, or it says what others want. */
async function openRegistry(registry: string): Promise<void> {
  await Deno.mkdir(registry, { recursive: true, mode: 0o700 });
  const { uid, mode, isDirectory } = await Deno.lstat(registry);
  if (isDirectory && uid === Deno.uid() && ((mode ?? 0) & 0o022) === 0) return;
  throw new BackendError("refused", `Use "${registry}": it is not ours alone, remove it`);
}

/**
 * Makes `root` and checks that other users can get to the folders in it. Resolves to its real path.
 * Throws {@link BackendError} `invalid` that names the closed directory.
 */
export async function prepareRoot(root: string, userIds: UserIds | null): Promise<string> {
  await Deno.mkdir(root, { recursive: true, mode: userIds === null ? 0o700 : 0o711 });
  const path = await Deno.realPath(root);
  const closed = userIds === null ? undefined : await closedFolder(path);
  if (closed === undefined) return path;
  throw new BackendError(
    "invalid",
    `Use "${path}" for executors with users of their own: "${closed}" is closed to others, choose another directory or chmod o+x it`,
    { retryable: false },
  );
}
