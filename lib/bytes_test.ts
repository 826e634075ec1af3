import assert from "node:assert/strict";
import { concatBytes, sameBytes } from "./bytes.ts";

Deno.test("concatBytes() joins views of larger buffers, and nothing", () => {
  const view = new Uint8Array([9, 1, 2, 9]).subarray(1, 3);
  assert.deepEqual(
    concatBytes([view, new Uint8Array(), new Uint8Array([3])]),
    Uint8Array.of(1, 2, 3),
  );
  assert.deepEqual(concatBytes([]), new Uint8Array());
});

Deno.test("sameBytes() compares length and content", () => {
  assert.equal(sameBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 2)), true);
  assert.equal(sameBytes(Uint8Array.of(1, 2), Uint8Array.of(1, 3)), false);
  assert.equal(sameBytes(Uint8Array.of(1), Uint8Array.of(1, 2)), false);
});
