import assert from "node:assert/strict";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld } from "../support/engine_world.ts";

Deno.test("engine binds the identity of a running executor again within a list's time", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 120_000 });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  await world.clock.advance(10_000);
  const bound = world.pod.bound.get(world.executor(1));
  assert.ok(bound !== undefined);
  world.pod.unbind(world.executor(1));
  await world.until("the binding", () => world.pod.bound.get(world.executor(1)) === bound, 31_000);
  await world.cleaned(1, 200_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});

Deno.test("engine binds again before the claim, so that the first executor claims the job", async () => {
  await using world = await createWorld({ capacity: 1 });
  await world.start();
  world.onJournal = ({ event }) => {
    if (event === "backend_ready") world.pod.unbind(world.executor(1));
  };
  const from = world.clock.now();
  await world.submit(1);
  await world.cleaned(1, 60_000);
  assert.ok(world.clock.now() - from <= 40_000, "long before the claim time-out");
  assert.equal(world.events(1).filter((event) => event === "executor_created").length, 1);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});
