import assert from "node:assert/strict";
import { choosePorts } from "./ports.ts";

async function setup() {
  const root = await Deno.makeTempDir({ prefix: "gdr-ports-" });
  return {
    file: `${root}/ports.json`,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("choosePorts() gives each name a port of its own and the same ones again later", async () => {
  await using world = await setup();
  const first = await choosePorts(world.file, ["nats", "forge", "facade"]);
  assert.equal(new Set(Object.values(first)).size, 3);
  assert.deepEqual(await choosePorts(world.file, ["facade", "nats", "forge"]), first);
  assert.equal((await choosePorts(world.file, ["nats"])).nats, first.nats);
  assert.deepEqual(await choosePorts(world.file, ["nats", "forge", "facade"]), first);
});

Deno.test("choosePorts() replaces a port that somebody else has taken, and keeps the others", async () => {
  await using world = await setup();
  const first = await choosePorts(world.file, ["nats", "forge"]);
  using _other = Deno.listen({ hostname: "127.0.0.1", port: first.nats });
  const second = await choosePorts(world.file, ["nats", "forge"]);
  assert.notEqual(second.nats, first.nats);
  assert.equal(second.forge, first.forge);
});

Deno.test("choosePorts() takes a damaged file for none", async () => {
  await using world = await setup();
  for (const text of ["", "[1]", '{"nats":"x","forge":99999999}', '{"nats":-1}']) {
    await Deno.writeTextFile(world.file, text);
    const { nats, forge } = await choosePorts(world.file, ["nats", "forge"]);
    assert.ok(nats > 0 && nats < 65536 && forge > 0 && forge < 65536 && nats !== forge);
  }
});
