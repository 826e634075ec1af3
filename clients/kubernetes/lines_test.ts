import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import { createLineSplitter, LineTooLong } from "./lines.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("createLineSplitter() gives whole lines, however the bytes are cut", () => {
  const text = fc.string({ unit: "grapheme" }).map((line) => line.replaceAll("\n", " "));
  fc.assert(fc.property(
    fc.array(text),
    fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
    (lines, sizes) => {
      const whole = bytes(lines.map((line) => `${line}\n`).join(""));
      const splitter = createLineSplitter(1_000);
      const found: string[] = [];
      for (let at = 0, i = 0; at < whole.length; i++) {
        const size = sizes[i % sizes.length] ?? 1;
        found.push(...splitter.push(whole.slice(at, at + size)));
        at += size;
      }
      assert.deepEqual(found, lines);
    },
  ));
});

Deno.test("createLineSplitter() gives nothing for a line that has not ended", () => {
  const splitter = createLineSplitter(100);
  assert.deepEqual([...splitter.push(bytes("half"))], []);
  assert.deepEqual([...splitter.push(bytes(" and half\nrest"))], ["half and half"]);
});

Deno.test("createLineSplitter() refuses a line that is too long, whether it ends or not", () => {
  const push = (...chunks: string[]) => {
    const splitter = createLineSplitter(4);
    return chunks.flatMap((chunk) => [...splitter.push(bytes(chunk))]);
  };
  assert.deepEqual(push("1234\n1234\n"), ["1234", "1234"]);
  assert.throws(() => push("12345\n"), LineTooLong);
  assert.throws(() => push("123", "45"), LineTooLong);
  assert.throws(() => push("1234", "5\n"), LineTooLong);
});
