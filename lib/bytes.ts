import { onAbort } from "./abortable.ts";

/** All parts, one after the other. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** True when both hold the same bytes. Not for secrets: the time it takes tells where they differ. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

/**
 * All that a body holds; undefined when that is over `maxBytes`: what is left of it is then not read.
 * Rejects as the body does.
 */
export async function readAtMost(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    size += part.length;
    if (size > maxBytes) return undefined;
    parts.push(part);
  }
  return concatBytes(parts);
}

/**
 * What a stream brings until its end, or until it is `enough`, as text: whoever has written it may have left
 * it open to another. Rejects as the stream does.
 */
export async function readUntil(
  stream: ReadableStream<Uint8Array>,
  enough: AbortSignal,
): Promise<string> {
  const reader = stream.getReader();
  using _leaving = onAbort(enough, () => void reader.cancel().catch(() => {}));
  const parts: Uint8Array[] = [];
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    parts.push(read.value);
  }
  return new TextDecoder().decode(concatBytes(parts));
}
