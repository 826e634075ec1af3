import assert from "node:assert/strict";
import { refetching } from "./refetching.ts";

const START = Date.parse("2027-01-15T08:00:00.000Z");
const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString();
const data = { at: at(0), lastEventId: "1-1" };
const message = (event: string, seconds: number) => ({
  event,
  at: at(seconds),
  old: null,
  new: null,
});

Deno.test("refetching() listens to its own events and to the status, which shows that the stream lives", () => {
  assert.deepEqual(refetching(() => null, ["leader"]).events, ["leader", "status"]);
});

Deno.test("refetching() reads the page anew with every event and every status", () => {
  const { apply } = refetching(() => null, ["leader"]);
  assert.equal(apply(data, [message("leader", 1)]), "refetch");
  assert.equal(apply(data, [message("status", 5)]), "refetch");
  assert.equal(apply(data, [message("status", 10)]), "refetch");
});

Deno.test("refetching() leaves an idle page alone until it is as old as it may be", () => {
  const { apply } = refetching(() => null, ["operation"], { idleMs: 30_000 });
  assert.equal(apply(data, [message("status", 5)]), data);
  assert.equal(apply(data, [message("status", 25)]), data);
  assert.equal(apply(data, [message("status", 30)]), "refetch");
});

Deno.test("refetching() reads an idle page once more after an event, and then leaves it alone", () => {
  const { apply } = refetching(() => null, ["operation"], { idleMs: 30_000 });
  assert.equal(apply(data, [message("operation", 1), message("status", 1)]), "refetch");
  assert.equal(apply(data, [message("status", 6)]), "refetch");
  assert.equal(apply(data, [message("status", 11)]), data);
});
