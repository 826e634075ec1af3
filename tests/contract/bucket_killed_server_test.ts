import assert from "node:assert/strict";
import { demandApi } from "../../clients/nats/api.ts";
import { createBucket } from "../../clients/nats/bucket.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { DEPS, openNatsWorld } from "../support/nats_world.ts";

Deno.test("remove() of a bucket is not forgotten by a nats-server that is killed", async () => {
  await using world = await openNatsWorld({ jetstreamSync: "always", config: "" });
  const bucket = createBucket(world.connection, DEPS);
  const call = { signal: AbortSignal.timeout(20_000) };
  await bucket.put("epoch", { epoch: 1 }, 0, call);
  for (const key of ["task.1", "task.2"]) {
    const revision = await bucket.put(key, { key }, 0, call);
    assert.equal(await bucket.remove(key, revision, call), true);
  }

  await world.nats.kill9();
  await world.nats.restart();

  assert.deepEqual(await bucket.list("task.*", call), []);
  assert.equal(await bucket.get("task.1", call), undefined);
  const again = await bucket.put("task.1", { second: true }, 0, call);
  assert.deepEqual((await bucket.get("task.1", call))?.revision, again);
  await assert.rejects(bucket.put("task.1", { third: true }, 0, call));
});

Deno.test("remove() of a bucket leaves what was written since", async () => {
  await using world = await openNatsWorld();
  const bucket = createBucket(world.connection, DEPS);
  const call = { signal: AbortSignal.timeout(20_000) };
  const first = await bucket.put("task.1", { first: true }, 0, call);
  const second = await bucket.put("task.1", { second: true }, first, call);

  assert.equal(await bucket.remove("task.1", first, call), false);
  assert.equal((await bucket.get("task.1", call))?.revision, second);
  assert.equal(await bucket.remove("task.1", second, call), true);
  assert.equal(await bucket.remove("task.1", second, call), true, "it is removed already");
});

Deno.test("sweep() of a bucket takes old markers away, and no value", async () => {
  await using world = await openNatsWorld();
  let later = 0;
  const clock = { ...DEPS.clock, now: () => Date.now() + later };
  const bucket = createBucket(world.connection, { clock });
  const call = { signal: AbortSignal.timeout(20_000) };
  const put = (key: string) => bucket.put(key, { key }, 0, call);
  const messages = async () => {
    const path = "STREAM.INFO.KV_CI_RUNNER_STATE";
    const { state } = await demandApi(world.connection, { path, action: "Look" }, call);
    return objectOrEmpty(state)["messages"];
  };
  for (const key of ["task.1", "task.2"]) await bucket.remove(key, await put(key), call);
  await put("task.3");
  await bucket.remove("task.4", await put("task.4"), call);

  await bucket.sweep("task.*", call);
  assert.equal(await messages(), 4, "markers that are young stay");

  later = 601_000;
  await bucket.sweep("task.*", call);
  assert.equal(await messages(), 2, "one marker stands behind a value");
  assert.deepEqual((await bucket.list("task.*", call)).map(({ key }) => key), ["task.3"]);
});
