import { BackendError } from "../../controller/backend.ts";
import { listFolders, readStart } from "./folder.ts";
import { listProcesses, ownerOf } from "./proc.ts";

/** Unix users that executors may be given, one each. */
export interface UserIds {
  readonly first: number;
  readonly count: number;
}

/**
 * Gives the executor in `<root>/<name>` a user that no other folder has and no process runs as, and
 * notes it in the folder. Backends that share `root` wait for each other. Throws {@link BackendError}
 * `quota` when all are taken.
 */
export async function allocateUser(
  root: string,
  options: { readonly name: string; readonly userIds: UserIds },
): Promise<number> {
  using lock = await Deno.open(`${root}/.users-lock`, { write: true, create: true, mode: 0o600 });
  await lock.lock(true);
  const taken = new Set<number>();
  for (const name of await listFolders(root)) {
    const text = await readStart(`${root}/${name}/user`, 16);
    if (text !== undefined) taken.add(Number.parseInt(text, 10));
  }
  for (const { pid } of await listProcesses()) {
    const owner = await ownerOf(pid);
    if (owner !== undefined) taken.add(owner);
  }
  const { first, count } = options.userIds;
  for (let userId = first; userId < first + count; userId++) {
    if (taken.has(userId)) continue;
    await Deno.writeTextFile(`${root}/${options.name}/user`, `${userId}\n`, { mode: 0o600 });
    return userId;
  }
  throw new BackendError(
    "quota",
    `Find a free user id: all of ${first} to ${first + count - 1} are in use`,
  );
}

/**
 * Makes `root` and checks that other users can get to the folders in it. Resolves to its real path.
 * Throws {@link BackendError} `invalid` that names the closed directory.
 */
export async function prepareRoot(root: string, userIds: UserIds | null): Promise<string> {
  await Deno.mkdir(root, { recursive: true, mode: userIds === null ? 0o700 : 0o711 });
  const path = await Deno.realPath(root);
  if (userIds === null) return path;
  const parts = path.split("/");
  for (let length = 2; length <= parts.length; length++) {
    const directory = parts.slice(0, length).join("/");
    const { mode } = await Deno.stat(directory);
    if (mode !== null && (mode & 0o001) === 0) {
      throw new BackendError(
        "invalid",
        `Use "${path}" for executors with users of their own: "${directory}" is closed to others, choose another directory or chmod o+x it`,
        { retryable: false },
      );
    }
  }
  return path;
}
