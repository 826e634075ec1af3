/** What this machine keeps for itself is open to others, or cannot be read. */
export class StateError extends Error {
  override readonly name = "StateError";
}

/**
 * Makes `directory` (mode 0700) or checks that it is ours and closed to others; resolves to its real
 * path. Throws {@link StateError} that says what to do.
 */
export async function openStateDirectory(directory: string): Promise<string> {
  try {
    await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
    const path = await Deno.realPath(directory);
    await refuseWide(path, "700");
    return path;
  } catch (error) {
    throw stateFailure(directory, error);
  }
}

/** A failure of the file system below `directory` in words that say what to do; others unchanged. */
export function stateFailure(directory: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StateError) return error;
  // Words of ours before it, as of a child that has ended, say of what it is; that is no file of this folder.
  const why = /^([^:]*) \(os error (\d+)\)/.exec(error.message);
  if (why === null) return error;
  const wayOut = why[2] === ENOSPC
    ? "free some space, or set STATE_DIR to a directory elsewhere"
    : "set STATE_DIR to a directory that this user can write";
  const what = (why[1] ?? "").replace(/^./, (letter) => letter.toLowerCase());
  return new StateError(`Write to "${directory}": ${what}; ${wayOut}`, { cause: error });
}

const ENOSPC = "28";

/** Throws {@link StateError} unless `path` is ours alone. */
export async function refuseWide(path: string, wanted: "600" | "700"): Promise<void> {
  const { mode, uid } = await Deno.stat(path);
  const us = Deno.uid();
  if (us !== null && us !== 0 && uid !== null && uid !== us) {
    throw new StateError(
      `Use "${path}": it belongs to user ${uid}, not to us (${us}); set STATE_DIR to another directory`,
    );
  }
  if (mode === null || (mode & 0o077) === 0) return;
  const shown = (mode & 0o777).toString(8);
  // Who has named "/" or "/tmp" must not close it to everybody else.
  const elsewhere = wanted === "700"
    ? " if nothing else uses it, or set STATE_DIR to another directory"
    : "";
  throw new StateError(
    `Use "${path}": mode ${shown} opens it to others, it must be ${wanted} (chmod ${wanted} "${path}"${elsewhere})`,
  );
}

/**
 * Makes this process the only user of a state directory until the result is disposed of; the kernel
 * lets go of it when the process dies. Throws {@link StateError} when another process has it.
 */
export async function lockStateDirectory(directory: string): Promise<Disposable> {
  const path = `${directory}/lock`;
  const file = await Deno.open(path, { read: true, write: true, create: true, mode: 0o600 });
  try {
    if (!(await file.tryLock(true))) {
      const holder = (await Deno.readTextFile(path)).trim();
      const who = /^[0-9]+$/.test(holder) ? `process ${holder}` : "another process";
      throw new StateError(
        `Use "${directory}": ${who} is using it; stop that one, or set STATE_DIR to another directory`,
      );
    }
    await file.truncate();
    await file.write(new TextEncoder().encode(`${Deno.pid}\n`));
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}
