import assert from "node:assert/strict";
import { BackendError, type Executor, type ExecutorChange } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { executorOf } from "../../tests/support/executor_of.ts";
import { SandboxError } from "./sandboxes.ts";
import { pollSandboxes } from "./watch.ts";

const executor = (name: string, phase = "Running") => executorOf({ name, phase });

function setup(list: () => Executor[]) {
  const clock = createFakeClock();
  const seen: ExecutorChange[] = [];
  const controller = new AbortController();
  const world = {
    clock,
    seen,
    lists: 0,
    list,
    find: (_name: ExecutorName): Executor | undefined => undefined,
    async stop() {
      controller.abort();
      await clock.advance(0);
      await watching;
    },
  };
  const watching = (async () => {
    const changes = pollSandboxes({
      list() {
        world.lists++;
        return new Promise((resolve) => resolve(world.list()));
      },
      find: (name) => new Promise((resolve) => resolve(world.find(name))),
      made: () => [],
      pollMs: 5_000,
      clock,
      logger: silentLogger,
    }, controller.signal);
    for await (const change of changes) seen.push(change);
  })();
  return world;
}

Deno.test("one that cannot be looked at keeps no news of others back", async () => {
  const world = setup(() => [executor("a"), executor("b")]);
  await world.clock.advance(0);
  world.list = () => [executor("b", "Failed")];
  world.find = () => {
    throw new BackendError("unavailable", "Find executor: the server answered 500");
  };
  await world.clock.advance(5_000);
  assert.deepEqual(world.seen.slice(2).map(({ name, executor }) => [name, executor?.phase]), [
    ["b", "Failed"],
  ]);
  world.find = () => undefined;
  await world.clock.advance(5_000);
  assert.deepEqual(world.seen.slice(3), [{ name: "a", executor: null }]);
  await world.stop();
});

Deno.test("a server that wants to be left alone is, for a minute at most", async () => {
  const throttled = (retryAfterMs: number) => () => {
    const cause = new SandboxError("throttled", "429", { retryAfterMs });
    throw new BackendError("refused", "Watch executors: 429", { cause });
  };
  const world = setup(throttled(30_000));
  await world.clock.advance(0);
  await world.clock.advance(25_000);
  assert.equal(world.lists, 1);
  world.list = throttled(300_000);
  await world.clock.advance(5_000);
  assert.equal(world.lists, 2);
  world.list = () => [executor("a")];
  await world.clock.advance(60_000);
  assert.equal(world.lists, 3);
  assert.equal(world.seen.length, 1);
  await world.stop();
});
