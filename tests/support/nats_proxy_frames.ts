/** One frame of NATS's client protocol, as it stood on the wire. */
export interface NatsFrame {
  /** PUB or HPUB; MSG or HMSG; anything else. */
  readonly kind: "publish" | "message" | "other";
  readonly subject: string;
  /** Empty if there is none. */
  readonly reply: string;
  /** The payload without its headers. */
  readonly text: string;
  readonly raw: Uint8Array;
}

/** Cuts a stream of bytes into frames; what is incomplete waits for the next bytes. */
export interface FrameReader {
  push(bytes: Uint8Array): NatsFrame[];
}

/**
 * Makes a {@link FrameReader}. Of the protocol it knows the four frames with a payload:
 * `PUB subject [reply] size`, `HPUB subject [reply] headers total`, `MSG subject sid [reply] size`,
 * `HMSG subject sid [reply] headers total`; all others are one line.
 */
export function createFrameReader(): FrameReader {
  let rest: Uint8Array<ArrayBuffer> = new Uint8Array();
  return {
    push(bytes) {
      const all = new Uint8Array(rest.length + bytes.length);
      all.set(rest);
      all.set(bytes, rest.length);
      const frames: NatsFrame[] = [];
      let at = 0;
      while (true) {
        const frame = frameAt(all, at);
        if (frame === undefined) break;
        frames.push(frame);
        at += frame.raw.length;
      }
      rest = all.slice(at);
      return frames;
    },
  };
}

const NEWLINE = 10;
const decoder = new TextDecoder();

function frameAt(bytes: Uint8Array, start: number): NatsFrame | undefined {
  const newline = bytes.indexOf(NEWLINE, start);
  if (newline < 0) return undefined;
  const [verb = "", ...words] = decoder.decode(bytes.subarray(start, newline)).trim().split(/\s+/);
  const form = FORMS[verb.toUpperCase()];
  if (form === undefined) {
    const raw = bytes.slice(start, newline + 1);
    return { kind: "other", subject: "", reply: "", text: "", raw };
  }
  const sizes = words.slice(form.headers ? -2 : -1).map(Number);
  const before = words.slice(0, form.headers ? -2 : -1);
  const total = sizes.at(-1) ?? 0;
  const from = newline + 1;
  // The payload ends with a line end of its own.
  if (bytes.length < from + total + 2) return undefined;
  const headers = form.headers ? sizes[0] ?? 0 : 0;
  return {
    kind: form.kind,
    subject: before[0] ?? "",
    reply: before[form.kind === "publish" ? 1 : 2] ?? "",
    text: decoder.decode(bytes.subarray(from + headers, from + total)),
    raw: bytes.slice(start, from + total + 2),
  };
}

const FORMS: Readonly<
  Record<string, { readonly kind: "publish" | "message"; readonly headers: boolean } | undefined>
> = {
  PUB: { kind: "publish", headers: false },
  HPUB: { kind: "publish", headers: true },
  MSG: { kind: "message", headers: false },
  HMSG: { kind: "message", headers: true },
};
