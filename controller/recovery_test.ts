import assert from "node:assert/strict";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { createWorld } from "../tests/support/engine_world.ts";

Deno.test("recover() gives no identity to an executor whose signature is missing", async () => {
  await using world = await createWorld({ capacity: 1 });
  const first = await world.start();
  // Its UID has not been written down yet: only the signature can prove whose it is.
  world.onJournal = ({ event }) => event === "executor_created" && first.kill();
  await world.submit(1);
  const name = world.executor(1);
  await world.until("an executor", () => world.pod.executors.has(name) && first.dead);
  world.onJournal = () => {};
  const made = world.pod.executors.get(name);
  assert.ok(made !== undefined);
  const { labels, annotations } = made.metadata;
  const unsigned = Object.entries(annotations).filter(([key]) => !key.endsWith("/signature"));
  assert.equal(unsigned.length, Object.keys(annotations).length - 1);
  world.pod.put({ ...made, metadata: { labels, annotations: Object.fromEntries(unsigned) } });

  const { engine } = await world.start();
  await world.until("recovery", () => engine.ready());
  await world.clock.advance(60_000);
  assert.equal(world.pod.bound.has(name), false);
  assert.deepEqual(engine.strangers("pod").map(({ ownership }) => ownership), ["foreign"]);

  world.pod.vanish(name);
  await world.cleaned(1, 120_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});
