const MOST_BYTES = 1024 * 1024;
const TAIL_BYTES = 16 * 1024;
const TAIL_LINES = 12;

/** Keeps only the end of a log that has grown over 1 MiB; its writer appends. Absent is fine. */
export async function boundLog(path: string): Promise<void> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (info === undefined || info.size <= MOST_BYTES) return;
  const tail = await readTail(path);
  await Deno.truncate(path, 0);
  await Deno.writeFile(path, tail, { append: true });
}

/** The last lines of a log, without control characters. */
export async function tailLog(path: string): Promise<readonly string[]> {
  const text = new TextDecoder().decode(await readTail(path));
  return text.split("\n").map((line) => line.replace(/\p{Cc}/gu, " ").trim().slice(0, 300))
    .filter((line) => line !== "").slice(-TAIL_LINES);
}

async function readTail(path: string): Promise<Uint8Array> {
  try {
    using file = await Deno.open(path);
    const { size } = await file.stat();
    await file.seek(Math.max(0, size - TAIL_BYTES), Deno.SeekMode.Start);
    const buffer = new Uint8Array(TAIL_BYTES);
    const read = await file.read(buffer) ?? 0;
    return buffer.subarray(0, read);
  } catch {
    return new Uint8Array();
  }
}
