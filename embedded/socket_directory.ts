import { dirname } from "node:path";

/** Longest path of a unix socket (`sun_path` less its end). */
export const MAX_SOCKET_PATH = 107;

/**
 * Makes the directory for unix sockets: ours, and writable by nobody else. With `shared`, other
 * users may pass through to sockets whose names they know (mode 0711), otherwise not (0700). Throws
 * an `Error` when somebody else's directory or a link stands there: in a world-writable parent that
 * may be an attack.
 */
export async function prepareSocketDirectory(path: string, shared: boolean): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  try {
    await Deno.mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  const found = await Deno.lstat(path);
  if (!found.isDirectory || found.uid !== Deno.uid()) {
    throw new Error(
      `Make directory for sockets "${path}": something that is not ours stands there: remove it`,
    );
  }
  await Deno.chmod(path, shared ? 0o711 : 0o700);
}
