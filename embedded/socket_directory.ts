import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Longest path of a unix socket (`sun_path` less its end). */
const MAX_SOCKET_PATH = 107;

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

/**
 * A short, stable path for the socket of `name` that `userId` (null = ours) can reach: our own
 * directory is closed to other users. Its directory is made. Throws an `Error` when it is too long.
 */
export async function placeSocket(
  name: string,
  options: {
    readonly directory: string;
    readonly userId: number | null;
    /** For other users, and when `directory` is too long; the system's by default. */
    readonly temporaryDirectory?: string;
  },
): Promise<string> {
  const { directory, userId, temporaryDirectory = tmpdir() } = options;
  const file = `${(await hash(name)).slice(0, 24)}.sock`;
  const own = join(directory, "sockets", file);
  const base = `gdr-${(await hash(directory)).slice(0, 16)}`;
  const away = join(temporaryDirectory, base, file);
  const path = userId === null && byteLength(own) <= MAX_SOCKET_PATH ? own : away;
  if (byteLength(path) > MAX_SOCKET_PATH) {
    throw new Error(
      `Place socket "${path}": longer than ${MAX_SOCKET_PATH} bytes: use a shorter directory`,
    );
  }
  await prepareSocketDirectory(join(path, ".."), path === away);
  return path;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

async function hash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(digest).toHex();
}
