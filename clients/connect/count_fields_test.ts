import assert from "node:assert/strict";
import { create, toBinary } from "../../proto/runtime.ts";
import {
  UpdateLogRequestSchema,
  UpdateTaskRequestSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { fc } from "../../tests/support/property.ts";
import { fieldCounter } from "./count_fields.ts";

const countLog = fieldCounter(UpdateLogRequestSchema);
const countTask = fieldCounter(UpdateTaskRequestSchema);

Deno.test("fieldCounter() counts at every depth, and nothing inside of texts", () => {
  const log = toBinary(
    UpdateLogRequestSchema,
    create(UpdateLogRequestSchema, {
      taskId: 7n,
      index: 1n << 40n,
      rows: [{ content: "\u0008\u0001\u0008\u0001" }, { time: { seconds: 5n, nanos: 6 } }, {}],
      noMore: true,
    }),
  );
  // Task, index, no_more; three rows; one content; one time with its two fields.
  assert.equal(countLog(log, 99), 3 + 3 + 1 + 3);
  const task = toBinary(
    UpdateTaskRequestSchema,
    create(UpdateTaskRequestSchema, {
      state: { id: 7n, steps: [{ id: 1n }, { id: 2n, logIndex: 3n }] },
      outputs: { a: "1", b: "2" },
    }),
  );
  // State with its id; two steps with their fields; two entries of two fields.
  assert.equal(countTask(task, 99), 2 + 2 + 3 + 6);
});

Deno.test("fieldCounter() stops when there are too many, however many follow", () => {
  const rows = new Uint8Array(8_000_000);
  for (let at = 0; at < rows.length; at += 2) rows[at] = 0x1a;
  assert.equal(countLog(rows, 1000), 1001);
  // The same hidden in one row: a field that is given again and again.
  const times = new Uint8Array(4 + 1_000_000).fill(0);
  for (let at = 4; at < times.length; at += 2) times[at] = 0x0a;
  times.set([0x1a, 0xc0, 0x84, 0x3d]);
  assert.equal(countLog(times, 1000), 1001);
});

Deno.test("fieldCounter() ends for any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    const count = countTask(bytes, 50);
    return count >= 0 && count <= 51 + 100;
  }));
});
