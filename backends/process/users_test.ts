import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { testUserIds } from "../../tests/support/user_ids.ts";
import { allocateUser, prepareRoot } from "./users.ts";

/** A root with the folder of one executor, and a registry of users of its own. */
async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "gdr-users-" });
  const root = `${directory}/root`;
  const registry = `${directory}/registry`;
  await Deno.mkdir(`${root}/ci-1`, { recursive: true });
  await Deno.mkdir(registry, { mode: 0o700 });
  return {
    root,
    registry,
    /** As another controller has it, which may be frozen at that moment. */
    async lock(): Promise<Disposable> {
      const file = await Deno.open(`${registry}/lock`, { write: true, create: true, mode: 0o600 });
      assert.ok(await file.tryLock(true));
      return file;
    },
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

const userIds = { first: 64_900, count: 1 };

Deno.test("allocateUser() waits for another controller no longer than its signal", async () => {
  await using world = await setup();
  using _frozen = await world.lock();
  const stop = new AbortController();
  const clock = createFakeClock();
  const waiting = allocateUser(world.root, {
    name: "ci-1",
    userIds,
    registry: world.registry,
    clock,
    signal: stop.signal,
  });
  const refused = assert.rejects(waiting, /stopped/);
  await clock.advance(100);
  stop.abort(new Error("stopped"));
  await clock.advance(100);
  await refused;
});

Deno.test("allocateUser() goes on when another controller has finished", async () => {
  await using world = await setup();
  const clock = createFakeClock();
  const other = await world.lock();
  const given = allocateUser(world.root, {
    name: "ci-1",
    userIds,
    registry: world.registry,
    clock,
    signal: new AbortController().signal,
  });
  await clock.advance(100);
  other[Symbol.dispose]();
  await clock.advance(100);
  assert.equal(await given, userIds.first);
});

Deno.test({
  name: "prepareRoot() names the directory that is closed to other users",
  ignore: Deno.build.os === "windows",
  async fn() {
    const root = await Deno.makeTempDir({ dir: "/tmp", prefix: "gdr-closed-" });
    await assert.rejects(
      prepareRoot(`${root}/run/pod`, testUserIds(0, 1)),
      (error) => {
        assert.ok(error instanceof BackendError && error.code === "invalid");
        assert.ok(error.message.includes(`"${root}" is closed to others`), error.message);
        return true;
      },
    );
    await Deno.remove(root, { recursive: true });
  },
});
