/** A line that is longer than allowed. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";
}

/**
 * Cuts bytes into lines. `push` gives the lines that a chunk completes; what is left of one that never
 * ends is forgotten with the splitter. Throws {@link LineTooLong} beyond `maxBytes` in one line.
 */
export function createLineSplitter(
  maxBytes: number,
): { push(chunk: Uint8Array): Generator<string, void> } {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let held = 0;
  const add = (part: Uint8Array) => {
    held += part.length;
    if (held > maxBytes) {
      throw new LineTooLong(`Read a line: longer than ${maxBytes} bytes`);
    }
    if (part.length > 0) parts.push(part);
  };
  const take = () => {
    const text = parts.map((part) => decoder.decode(part, { stream: true })).join("") +
      decoder.decode();
    parts = [];
    held = 0;
    return text;
  };
  return {
    *push(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        add(chunk.subarray(from, at));
        from = at + 1;
        yield take();
      }
      add(chunk.subarray(from));
    },
  };
}
