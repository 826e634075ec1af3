import assert from "node:assert/strict";
import { concatBytes, readAtMost, readUntil, sameBytes } from "./bytes.ts";

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

Deno.test("readAtMost() gives a body that fits, and reads no further into one that does not", async () => {
  let read = 0;
  const body = function* () {
    for (const part of [Uint8Array.of(1, 2), Uint8Array.of(3), Uint8Array.of(4)]) {
      read++;
      yield part;
    }
  };
  assert.deepEqual(await readAtMost(body(), 4), Uint8Array.of(1, 2, 3, 4));
  read = 0;
  assert.equal(await readAtMost(body(), 2), undefined);
  assert.equal(read, 2);
  assert.deepEqual(await readAtMost([], 0), new Uint8Array());
});

Deno.test("readUntil() gives what came by the end, or by the moment in which it is enough", async () => {
  const bytes = new TextEncoder().encode("said");
  const never = new AbortController().signal;
  assert.equal(await readUntil(new Blob([bytes]).stream(), never), "said");
  const open = new ReadableStream({ start: (controller) => controller.enqueue(bytes) });
  const enough = new AbortController();
  const read = readUntil(open, enough.signal);
  enough.abort();
  assert.equal(await read, "said");
});
