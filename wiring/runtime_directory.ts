import { createHash } from "node:crypto";
import { dirname, resolve } from "node:path";

/**
 * A folder for what executors of other users must reach: below `stateDir` where those users can get
 * there, else below the system's temporary folder, under a name derived from `stateDir` so that the
 * next start finds it again.
 */
export async function runtimeDirectory(
  stateDir: string,
  options: { readonly otherUsers: boolean; readonly temporary?: string },
): Promise<string> {
  const below = resolve(stateDir, "run");
  if (!options.otherUsers) return below;
  // STATE_DIR itself is closed to others by design (mode 0700).
  const hash = createHash("sha256").update(resolve(stateDir)).digest("hex").slice(0, 12);
  const directory = resolve(options.temporary ?? "/var/tmp", `gitea-dynamic-runner-${hash}`);
  await Deno.mkdir(directory, { recursive: true, mode: 0o711 });
  const { uid } = await Deno.lstat(directory);
  if (uid !== Deno.uid()) {
    // Somebody else's folder under a predictable name: their programs would run as ours.
    throw new Error(
      `Use "${directory}" for executors: it belongs to user ${uid}; remove it, or set STATE_DIR to another folder`,
    );
  }
  await Deno.chmod(directory, 0o711);
  for (let parent = dirname(directory);; parent = dirname(parent)) {
    const { mode } = await Deno.stat(parent);
    if (mode !== null && (mode & 0o001) === 0) {
      throw new Error(`Use "${directory}" for executors: "${parent}" is closed to other users`);
    }
    if (parent === dirname(parent)) return directory;
  }
}
