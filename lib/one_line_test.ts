import assert from "node:assert/strict";
import { oneLine } from "./one_line.ts";

Deno.test("oneLine() makes one blank of control characters in a row", () => {
  assert.equal(oneLine("no image\r\n\tfor \u001b[31marm64\u007f"), "no image for  [31marm64");
});

Deno.test("oneLine() leaves out what is around and what is too much", () => {
  assert.equal(oneLine("\n  pulling \u00e9\n"), "pulling \u00e9");
  assert.equal(oneLine("abcdef", 4), "abcd");
  assert.equal(oneLine("x".repeat(1_000)).length, 300);
});
