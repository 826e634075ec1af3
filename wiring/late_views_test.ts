import assert from "node:assert/strict";
import type { Change } from "../controller/views/views.ts";
import { onAbort } from "../lib/abortable.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { createLateViews } from "./late_views.ts";

const clock = { now: () => Date.parse("2027-01-15T08:00:00Z") };

Deno.test("become() tells subscribers that another's word holds from now on, and moves them over", () => {
  const [first, second] = [createFakeViews({ clock }), createFakeViews({ clock })];
  const told: Change[] = [];
  const subscribed = { first: 0, second: 0 };
  const over = { first: false };
  const views = createLateViews({
    ...first,
    subscribe(_, signal) {
      subscribed.first++;
      onAbort(signal, () => over.first = true);
    },
  });
  const stop = new AbortController();
  views.subscribe((change) => void told.push(change), stop.signal);
  const leader = { ...second.leader(), holder: "another" };
  views.become({ ...second, leader: () => leader, subscribe: () => subscribed.second++ });
  assert.deepEqual(told, [{ kind: "leader", old: first.leader(), new: leader }]);
  assert.deepEqual(subscribed, { first: 1, second: 1 });
  assert.ok(over.first);
  stop.abort();
  views.become(first);
  assert.equal(told.length, 1, "nobody listens any more");
});
