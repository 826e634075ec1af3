import assert from "node:assert/strict";
import { fc } from "../tests/support/property.ts";
import { createRowSpool, type RowSpoolOptions } from "./row_spool.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (rows: readonly Uint8Array[]) => rows.map((row) => new TextDecoder().decode(row));

function setup(options: Partial<RowSpoolOptions> = {}) {
  const folder = Deno.makeTempDirSync();
  const spool = createRowSpool({ file: `${folder}/rows`, ...options });
  return {
    spool,
    file: `${folder}/rows`,
    [Symbol.dispose]() {
      spool[Symbol.dispose]();
      Deno.removeSync(folder, { recursive: true });
    },
  };
}

Deno.test("createRowSpool() gives rows back in order when they went through the file", () => {
  using it = setup({ memoryBytes: 100 });
  const rows = Array.from({ length: 50 }, (_, i) => `row ${i}`);
  for (const row of rows) assert.equal(it.spool.push(bytes(row)), true);
  assert.ok(it.spool.spilled > 0);
  const seen: string[] = [];
  while (it.spool.length > 0) {
    const some = it.spool.peek(7, 1000);
    seen.push(...texts(some));
    it.spool.drop(some.length);
  }
  assert.deepEqual(seen, rows);
});

Deno.test("createRowSpool() makes its file with mode 0600, and removes it", () => {
  const it = setup({ memoryBytes: 10 });
  it.spool.push(bytes("a row that does not fit"));
  it.spool.push(bytes("another row that does not fit"));
  assert.equal((Deno.statSync(it.file).mode ?? 0) & 0o777, 0o600);
  it.spool[Symbol.dispose]();
  assert.throws(() => Deno.statSync(it.file), Deno.errors.NotFound);
  it[Symbol.dispose]();
});

Deno.test("createRowSpool() needs no file when the memory is enough", () => {
  using it = setup();
  it.spool.push(bytes("a row"));
  assert.throws(() => Deno.statSync(it.file), Deno.errors.NotFound);
});

Deno.test("push() refuses a row when the file is full and takes it after a drop", () => {
  using it = setup({ memoryBytes: 20, fileBytes: 60 });
  let count = 0;
  while (it.spool.push(bytes(`row ${String(count).padStart(6, "0")}`))) count++;
  assert.ok(count > 2 && count < 10, `${count} rows`);
  while (it.spool.length > 0) it.spool.drop(1);
  assert.equal(it.spool.push(bytes("again")), true);
  assert.deepEqual(texts(it.spool.peek(9, 99)), ["again"]);
});

Deno.test("push() stores nothing of a row that the disk does not take, and goes on once there is room", () => {
  using it = setup({ file: "/nowhere/rows", memoryBytes: 40 });
  const taken: string[] = [];
  for (let i = 0; i < 9; i++) {
    if (it.spool.push(bytes(`row ${i}`))) taken.push(`row ${i}`);
  }
  assert.ok(taken.length > 1 && taken.length < 9, `${taken}`);
  assert.equal(it.spool.length, taken.length);
  const seen: string[] = [];
  while (it.spool.length > 0) {
    seen.push(...texts(it.spool.peek(1, 99)));
    it.spool.drop(1);
  }
  assert.deepEqual(seen, taken);
  assert.ok(it.spool.push(bytes("again")));
});

Deno.test("peek() gives a single row that is over the bound on bytes", () => {
  using it = setup();
  it.spool.push(bytes("much longer than ten bytes"));
  it.spool.push(bytes("b"));
  assert.equal(it.spool.peek(10, 10).length, 1);
});

Deno.test("createRowSpool() is a queue whatever the order of pushes, peeks and drops", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("push" as const), text: fc.string({ maxLength: 40 }) }),
    fc.record({ kind: fc.constant("drop" as const), count: fc.integer({ min: 0, max: 6 }) }),
    fc.record({ kind: fc.constant("peek" as const), count: fc.integer({ min: 1, max: 6 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      using it = setup({ memoryBytes: 64 });
      const model: string[] = [];
      for (const one of steps) {
        if (one.kind === "push") {
          it.spool.push(bytes(one.text));
          model.push(one.text);
        } else if (one.kind === "drop") {
          it.spool.drop(one.count);
          model.splice(0, one.count);
        } else {
          const seen = texts(it.spool.peek(one.count, 1_000_000));
          assert.deepEqual(seen, model.slice(0, seen.length));
          assert.equal(seen.length > 0, model.length > 0);
        }
        assert.equal(it.spool.length, model.length);
      }
    }),
    { numRuns: 60 },
  );
});
