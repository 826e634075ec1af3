/**
 * Files that a program of somebody else writes: a job, a server. It may close them to us, make them
 * as long as it likes or put something else in their place; none of that is an error here.
 */

const END_BYTES = 16 * 1024;

/** The first bytes of a file, however long it is; undefined when it is not there or cannot be read. */
export async function readStart(path: string, bytes: number): Promise<string | undefined> {
  using file = await openRegular(path);
  if (file === undefined) return undefined;
  const buffer = new Uint8Array(bytes);
  const read = await file.read(buffer) ?? 0;
  return new TextDecoder().decode(buffer.subarray(0, read));
}

/** The last 16 KiB of a file; empty when it is not there or cannot be read. */
export async function readEnd(path: string): Promise<string> {
  return new TextDecoder().decode(await endOf(path));
}

/**
 * Keeps a file that a running program appends to from growing for ever: of one with more than
 * `maxBytes` only the last 16 KiB are kept. What is written during the cut may be lost.
 */
export async function keepEnd(path: string, maxBytes: number): Promise<void> {
  try {
    const { isFile, size } = await Deno.lstat(path);
    if (!isFile || size <= maxBytes) return;
    const end = await endOf(path);
    await Deno.truncate(path, 0);
    await Deno.writeFile(path, end, { append: true, create: false });
  } catch (error) {
    if (!isOutOfReach(error)) throw error;
  }
}

async function endOf(path: string): Promise<Uint8Array> {
  using file = await openRegular(path);
  if (file === undefined) return new Uint8Array();
  const { size } = await file.stat();
  await file.seek(Math.max(0, size - END_BYTES), Deno.SeekMode.Start);
  const buffer = new Uint8Array(END_BYTES);
  let length = 0;
  while (length < END_BYTES) {
    const read = await file.read(buffer.subarray(length));
    if (read === null) break;
    length += read;
  }
  return buffer.subarray(0, length);
}

/** Never a pipe, which would not open, nor what a link leads to. */
async function openRegular(path: string): Promise<Deno.FsFile | undefined> {
  try {
    if (!(await Deno.lstat(path)).isFile) return undefined;
    return await Deno.open(path);
  } catch (error) {
    if (isOutOfReach(error)) return undefined;
    throw error;
  }
}

function isOutOfReach(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory ||
    error instanceof Deno.errors.PermissionDenied;
}
