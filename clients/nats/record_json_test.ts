import assert from "node:assert/strict";
import { recordOf } from "../../tests/contract/records_suite.ts";
import { readRecord } from "./record_json.ts";

const json = (record: unknown) => JSON.parse(JSON.stringify(record));

Deno.test("readRecord() gives the reported end as it was written, with and without a row", () => {
  const step = {
    id: 0,
    result: "success",
    startedAt: 1,
    stoppedAt: 2,
    logIndex: 3,
    logLength: 4,
  } as const;
  for (const row of [null, "why"]) {
    const record = recordOf({ reported: { result: "success", steps: [step], row, at: 5 } });
    assert.deepEqual(readRecord(json(record)), record);
  }
});

Deno.test("readRecord() reads a record of an earlier release, and one whose reported end is none", () => {
  const record = recordOf();
  assert.deepEqual(readRecord(json(record)), record);
  for (const reported of [null, "success", {}, { result: "maybe" }]) {
    assert.deepEqual(readRecord(json({ ...record, reported })), record);
  }
});
