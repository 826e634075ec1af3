import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { closedFolder } from "../lib/closed_folder.ts";

/** Where {@link runtimeDirectory} is; nothing is made. */
export function runtimePath(
  stateDir: string,
  options: { readonly otherUsers: boolean; readonly temporary?: string },
): string {
  if (!options.otherUsers) return resolve(stateDir, "run");
  const hash = createHash("sha256").update(resolve(stateDir)).digest("hex").slice(0, 12);
  return resolve(options.temporary ?? "/var/tmp", `gitea-dynamic-runner-${hash}`);
}

/**
 * A folder for what executors of other users must reach: below `stateDir` where those users can get
 * there, else below the system's temporary folder, under a name derived from `stateDir` so that the
 * next start finds it again.
 */
export async function runtimeDirectory(
  stateDir: string,
  options: { readonly otherUsers: boolean; readonly temporary?: string },
): Promise<string> {
  const directory = runtimePath(stateDir, options);
  // STATE_DIR itself is closed to others by design (mode 0700): for them it is another folder.
  if (!options.otherUsers) return directory;
  await Deno.mkdir(directory, { recursive: true, mode: 0o711 });
  const { uid } = await Deno.lstat(directory);
  if (uid !== Deno.uid()) {
    // Somebody else's folder under a predictable name: their programs would run as ours.
    throw new Error(
      `Use "${directory}" for executors: it belongs to user ${uid}; remove it, or set STATE_DIR to another folder`,
    );
  }
  await Deno.chmod(directory, 0o711);
  const closed = await closedFolder(directory);
  if (closed === undefined) return directory;
  throw new Error(`Use "${directory}" for executors: "${closed}" is closed to other users`);
}

/**
 * Removes the runtime directory when it is outside of STATE_DIR and no executor is left in the folders
 * of `backends`; otherwise they, or the next start, still need it. Never throws.
 */
export async function leaveRuntimeDirectory(
  directory: string,
  options: { readonly otherUsers: boolean; readonly backends: readonly string[] },
): Promise<void> {
  if (!options.otherUsers) return;
  try {
    for (const backend of options.backends) {
      if (await hasFolders(resolve(directory, backend))) return;
    }
    await Deno.remove(directory, { recursive: true });
  } catch {
    // Not there, or not to be removed: it does no harm.
  }
}

/** Executors are folders; the backend's own notes are files. */
async function hasFolders(directory: string): Promise<boolean> {
  try {
    for await (const { isDirectory } of Deno.readDir(directory)) if (isDirectory) return true;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return false;
}
