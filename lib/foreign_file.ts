import { constants, type FileHandle, open } from "node:fs/promises";

/**
 * Files that a program of somebody else writes: a job, a server. It may close them to us, make them
 * as long as it likes or put something else in their place; none of that is an error here.
 */

const END_BYTES = 16 * 1024;
/** Never what a link leads to, nor for as long as nobody is at the other end of a pipe. */
const CAREFULLY = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const TO_READ = constants.O_RDONLY | CAREFULLY;
const TO_CUT = constants.O_RDWR | constants.O_APPEND | CAREFULLY;
/** Not there, not ours to open, or a link. */
const OUT_OF_REACH: readonly unknown[] = ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ENXIO"];

/** The first bytes of a file, however long it is; undefined when it is not there or cannot be read. */
export async function readStart(path: string, bytes: number): Promise<string | undefined> {
  await using file = await openRegular(path, TO_READ);
  return file && new TextDecoder().decode(await readAt(file, 0, bytes));
}

/** The last 16 KiB of a file; empty when it is not there or cannot be read. */
export async function readEnd(path: string): Promise<string> {
  await using file = await openRegular(path, TO_READ);
  return file === undefined ? "" : new TextDecoder().decode(await endOf(file));
}

/**
 * Keeps a file that a running program appends to from growing for ever: of one with more than
 * `maxBytes` only the last 16 KiB are kept. What is written during the cut may be lost.
 */
export async function keepEnd(path: string, maxBytes: number): Promise<void> {
  await using file = await openRegular(path, TO_CUT);
  if (file === undefined || (await file.stat()).size <= maxBytes) return;
  const end = await endOf(file);
  await file.truncate(0);
  await file.writeFile(end);
}

async function endOf(file: FileHandle): Promise<Uint8Array> {
  const { size } = await file.stat();
  return await readAt(file, Math.max(0, size - END_BYTES), END_BYTES);
}

/** At most so many bytes, fewer where the file ends. */
async function readAt(file: FileHandle, from: number, bytes: number): Promise<Uint8Array> {
  const buffer = new Uint8Array(bytes);
  let length = 0;
  while (length < bytes) {
    const { bytesRead } = await file.read(buffer, length, bytes - length, from + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** Judged when it is open: before that another thing may take its place at any moment. */
async function openRegular(path: string, flags: number): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, flags);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (OUT_OF_REACH.includes(code)) return undefined;
    throw error;
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}
