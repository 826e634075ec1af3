/**
 * Annotations in a sandbox's metadata. Metadata has only values in the form of Kubernetes'
 * labels, so annotations are written as JSON with sorted keys, in URL-safe base64 without padding, cut
 * into chunks under numbered keys.
 */

/** What the chunks of a sandbox hold; `detail` says why that cannot be read. */
export type Decoded =
  | { readonly kind: "decoded"; readonly annotations: Readonly<Record<string, string>> }
  | { readonly kind: "unreadable"; readonly detail: string };

/** Longest value of a label. */
const CHUNK = 63;

/** The metadata that holds `annotations`. Throws a `RangeError` when they fill over a thousand chunks. */
export function encodeAnnotations(
  annotations: Readonly<Record<string, string>>,
  prefix: string,
): Readonly<Record<string, string>> {
  const sorted = Object.entries(annotations).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0);
  const text = JSON.stringify(Object.fromEntries(sorted)).replace(AWKWARD, escaped);
  const encoded = new TextEncoder().encode(text).toBase64({
    alphabet: "base64url",
    omitPadding: true,
  });
  const chunks = encoded.match(/.{1,63}/g) ?? [];
  if (chunks.length > 1000) throw new RangeError("Annotations fill over a thousand chunks");
  return Object.fromEntries(
    chunks.map((chunk, index) => [`${keyOf(prefix)}${String(index).padStart(3, "0")}`, chunk]),
  );
}

/** Reads the annotations back; never throws. */
export function decodeAnnotations(
  metadata: Readonly<Record<string, string>>,
  prefix: string,
): Decoded {
  const keys = Object.keys(metadata).filter((key) => isChunkKey(key, prefix)).sort();
  if (keys.length === 0) return unreadable("sandbox annotation metadata is missing");
  const chunks = keys.map((key) => metadata[key] ?? "");
  const whole = keys.every((key, index) => Number(key.slice(-3)) === index) &&
    chunks.slice(0, -1).every(({ length }) => length === CHUNK);
  if (!whole) return unreadable(INCOMPLETE);
  try {
    const bytes = Uint8Array.fromBase64(chunks.join(""), { alphabet: "base64url" });
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const annotations = textsOf(value);
    if (annotations !== undefined) return { kind: "decoded", annotations };
  } catch {
    // A last chunk that is missing looks like this, too.
    if (chunks.at(-1)?.length === CHUNK) return unreadable(INCOMPLETE);
  }
  return unreadable("sandbox annotation metadata cannot be decoded");
}

/** True for the key of a chunk. */
export function isChunkKey(key: string, prefix: string): boolean {
  return key.startsWith(keyOf(prefix)) && /^[0-9]{3}$/.test(key.slice(keyOf(prefix).length));
}

const INCOMPLETE = "sandbox annotation metadata chunks are incomplete";

/**
 * A label begins and ends with a letter or digit, and base64url has `-` and `_` beside those. They come
 * of bytes whose last six bits are 62 or 63 and of bytes above 127, none of which is then left.
 */
// deno-lint-ignore no-control-regex -- whatever is not ASCII
const AWKWARD = /[>?~\x7f]|[^\x00-\x7f]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function keyOf(prefix: string): string {
  return `${prefix}/annotations-`;
}

function unreadable(detail: string): Decoded {
  return { kind: "unreadable", detail };
}

function textsOf(value: unknown): Readonly<Record<string, string>> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  return entries.every(([, each]) => typeof each === "string")
    ? Object.fromEntries(entries)
    : undefined;
}
