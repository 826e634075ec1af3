import assert from "node:assert/strict";
import { keepKey } from "./keys.ts";
import { lockStateDirectory, openStateDirectory, StateError } from "./state_directory.ts";

async function setup() {
  const root = await Deno.makeTempDir({ prefix: "gdr-keys-" });
  return {
    root,
    directory: await openStateDirectory(`${root}/state`),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("openStateDirectory() makes a directory for us alone and opens it again", async () => {
  await using world = await setup();
  const { mode } = await Deno.stat(world.directory);
  assert.equal((mode ?? 0) & 0o777, 0o700);
  assert.equal(await openStateDirectory(world.directory), world.directory);
});

Deno.test("openStateDirectory() refuses a directory that is open to others and says how to close it", async () => {
  await using world = await setup();
  await Deno.chmod(world.directory, 0o750);
  await assert.rejects(openStateDirectory(world.directory), (error) => {
    assert.ok(error instanceof StateError);
    assert.match(
      error.message,
      /mode 750 opens .*, it must be 700 \(chmod 700 ".*" if nothing else uses it, or set STATE_DIR/,
    );
    return true;
  });
});

Deno.test("lockStateDirectory() keeps a second process out, and lets it in afterwards", async () => {
  await using world = await setup();
  {
    using _lock = await lockStateDirectory(world.directory);
    const pattern = new RegExp(`process ${Deno.pid} is using it; .* STATE_DIR`);
    await assert.rejects(lockStateDirectory(world.directory), pattern);
  }
  using _again = await lockStateDirectory(world.directory);
});

Deno.test("keepKey() makes a key once, with mode 0600, and returns the same from then on", async () => {
  await using world = await setup();
  const options = { name: "capability-key" };
  const key = await keepKey(world.directory, options);
  assert.match(key.reveal(), /^[A-Za-z0-9_-]{43}$/);
  assert.equal((await keepKey(world.directory, options)).reveal(), key.reveal());
  const { mode } = await Deno.stat(`${world.directory}/capability-key`);
  assert.equal((mode ?? 0) & 0o777, 0o600);
  assert.notEqual((await keepKey(world.directory, { name: "other" })).reveal(), key.reveal());
  assert.deepEqual([...Deno.readDirSync(world.directory)].map(({ name }) => name).sort(), [
    "capability-key",
    "other",
  ]);
});

Deno.test("keepKey() returns one key when it is called many times at once", async () => {
  await using world = await setup();
  const keys = await Promise.all(
    Array.from({ length: 10 }, () => keepKey(world.directory, { name: "key" })),
  );
  assert.equal(new Set(keys.map((key) => key.reveal())).size, 1);
});

Deno.test("keepKey() refuses a file that is open to others, or that is no key", async () => {
  await using world = await setup();
  const path = `${world.directory}/key`;
  await keepKey(world.directory, { name: "key" });
  await Deno.chmod(path, 0o644);
  await assert.rejects(keepKey(world.directory, { name: "key" }), /mode 644 opens it to others/);
  await Deno.chmod(path, 0o600);
  await Deno.writeTextFile(path, "short");
  await assert.rejects(keepKey(world.directory, { name: "key" }), (error) => {
    assert.ok(error instanceof StateError);
    assert.match(error.message, /is no key of ours/);
    assert.doesNotMatch(error.message, /short/);
    return true;
  });
});
