import assert from "node:assert/strict";
import { parseGatePhases } from "./gate_phase.ts";

Deno.test("parseGatePhases() takes known phases in whole milliseconds and leaves out the rest", () => {
  const said = JSON.parse(
    `{"svid": 12, "task": 0, "ended": -1, "facade": 1.5, "runner": "3", "declare": 1e300,
      "__proto__": {"prepared": 4}, "made up": 5}`,
  );
  assert.deepEqual(parseGatePhases(said), { svid: 12, task: 0 });
});

for (const odd of [undefined, null, 7, "svid", [], [1, 2]]) {
  Deno.test(`parseGatePhases() is empty for ${JSON.stringify(odd)}`, () => {
    assert.deepEqual(parseGatePhases(odd), {});
  });
}
