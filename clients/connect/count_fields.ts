import type { DescMessage } from "../../proto/runtime.ts";

/** Counts the fields of a message, but no further than one beyond `most`. */
export type FieldCounter = (bytes: Uint8Array, most: number) => number;

const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;

/** Which length-delimited fields hold messages, by their numbers. */
type Inner = ReadonlyMap<number, Inner>;
const NO_MESSAGES: Inner = new Map();

/**
 * Counts how many fields a protobuf message of that kind holds on the wire, at every depth, without
 * decoding it: a field of two bytes becomes an object of a hundred. Bytes that are no such message
 * count as far as they can be read; whoever decodes them says so.
 */
export function fieldCounter(desc: DescMessage): FieldCounter {
  const root = innerOf(desc, new Map());
  return (bytes, most) => {
    let count = 0;
    let at = 0;
    /** The next varint before `to`; NaN where there is none. Bits above 49 do not matter here. */
    const varint = (to: number): number => {
      let value = 0;
      let unit = 1;
      for (let i = 0; i < 10 && at < to; i++) {
        const byte = bytes[at++] ?? 0;
        if (i < 7) value += (byte & 0x7f) * unit;
        unit *= 128;
        if (byte < 0x80) return value;
      }
      return NaN;
    };
    const walk = (inner: Inner, to: number) => {
      while (at < to && count <= most) {
        const tag = varint(to);
        if (Number.isNaN(tag)) return;
        count++;
        switch (tag % 8) {
          case VARINT:
            if (Number.isNaN(varint(to))) return;
            break;
          case FIXED64:
            at += 8;
            break;
          case DELIMITED: {
            const end = varint(to) + at;
            if (Number.isNaN(end) || end > to) return;
            const message = inner.get(Math.floor(tag / 8));
            if (message !== undefined && end > at) walk(message, end);
            at = end;
            break;
          }
          case FIXED32:
            at += 4;
            break;
          default:
            return;
        }
      }
    };
    walk(root, bytes.length);
    return count;
  };
}

function innerOf(desc: DescMessage, known: Map<DescMessage, Inner>): Inner {
  const before = known.get(desc);
  if (before !== undefined) return before;
  const inner = new Map<number, Inner>();
  // Before its fields are looked at: a message may hold itself.
  known.set(desc, inner);
  for (const field of desc.fields) {
    if (field.fieldKind === "map") {
      const { message } = field;
      inner.set(field.number, message ? new Map([[2, innerOf(message, known)]]) : NO_MESSAGES);
    } else if (field.message !== undefined) {
      inner.set(field.number, innerOf(field.message, known));
    }
  }
  return inner;
}
