import { Buffer } from "node:buffer";
import { join } from "node:path";
import { constants, inflateRawSync } from "node:zlib";

const MIN_ENCODED = 16;
const MAX_DEPTH = 4;
const MAX_UNPACKED = 64 * 1024 * 1024;

/**
 * Names of the files below `folder` in which `secret` is found: as it is, in base64 (both alphabets)
 * or gzip, and in whatever of these is packed into one another.
 */
export async function findSecretInFiles(folder: string, secret: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) found.push(...await findSecretInFiles(path, secret));
    else if (entry.isFile) {
      // A file may vanish while a server is at work.
      const data = await Deno.readFile(path).catch(() => undefined);
      if (data !== undefined && holdsSecret(data, secret)) found.push(path);
    }
  }
  return found;
}

/** True when `data` holds the secret, plain or packed. */
export function holdsSecret(data: Uint8Array, secret: string): boolean {
  return search(data, new TextEncoder().encode(secret), 0);
}

function search(data: Uint8Array, secret: Uint8Array, depth: number): boolean {
  if (Buffer.from(data.buffer, data.byteOffset, data.byteLength).indexOf(secret) >= 0) return true;
  if (depth >= MAX_DEPTH) return false;
  for (const inner of unpacked(data)) if (search(inner, secret, depth + 1)) return true;
  return false;
}

function* unpacked(data: Uint8Array): Iterable<Uint8Array> {
  const text = new TextDecoder("latin1").decode(data);
  for (const [run] of text.matchAll(new RegExp(`[A-Za-z0-9+/_-]{${MIN_ENCODED},}`, "g"))) {
    const standard = run.replaceAll("-", "+").replaceAll("_", "/");
    // Where the text begins is not known: what stands before it may be of the alphabet, too.
    for (let shift = 0; shift < 4; shift++) {
      const part = standard.slice(shift);
      yield Uint8Array.fromBase64(part.length % 4 === 1 ? part.slice(0, -1) : part);
    }
  }
  for (let at = data.indexOf(0x1f); at >= 0; at = data.indexOf(0x1f, at + 1)) {
    // Without flags the header has ten bytes; raw inflate does not mind what stands behind the end.
    if (data[at + 1] !== 0x8b || data[at + 2] !== 8 || data[at + 3] !== 0) continue;
    try {
      yield inflateRawSync(data.subarray(at + 10), {
        maxOutputLength: MAX_UNPACKED,
        finishFlush: constants.Z_SYNC_FLUSH,
      });
    } catch {
      // Bytes that only look like gzip.
    }
  }
}
