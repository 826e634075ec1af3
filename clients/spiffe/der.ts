/** One DER element: tag, content, and the whole of it. */
export interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
  readonly whole: Uint8Array;
}

/**
 * Splits bytes into the DER elements (X.690) that stand one after another. Throws a `RangeError` on
 * anything that is not complete DER: indefinite, over-long or cut lengths, multi-byte tags.
 */
export function readElements(bytes: Uint8Array): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const { start, length } = readHeader(bytes, at);
    const end = start + length;
    if (end > bytes.length) throw new RangeError("Read DER: an element is cut off");
    elements.push({
      tag: bytes[at] ?? 0,
      content: bytes.subarray(start, end),
      whole: bytes.subarray(at, end),
    });
    at = end;
  }
  return elements;
}

function readHeader(bytes: Uint8Array, at: number): { start: number; length: number } {
  const tag = bytes[at] ?? 0;
  if ((tag & 0x1f) === 0x1f) {
    throw new RangeError("Read DER: tags of several bytes are not used here");
  }
  const first = bytes[at + 1];
  if (first === undefined) throw new RangeError("Read DER: an element is cut off");
  if (first < 0x80) return { start: at + 2, length: first };
  const count = first & 0x7f;
  if (count === 0 || count > 4) throw new RangeError("Read DER: the length is not definite DER");
  let length = 0;
  for (let i = 0; i < count; i++) {
    const byte = bytes[at + 2 + i];
    if (byte === undefined) throw new RangeError("Read DER: an element is cut off");
    length = length * 256 + byte;
  }
  if (length < 0x80 || length < 256 ** (count - 1)) {
    throw new RangeError("Read DER: the length is longer than needed");
  }
  return { start: at + 2 + count, length };
}

/** DER bytes as PEM with that label, lines of 64 characters (RFC 7468). */
export function toPem(label: "CERTIFICATE" | "PRIVATE KEY", der: Uint8Array): string {
  const lines = der.toBase64().match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
