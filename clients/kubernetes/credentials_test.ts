import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createCredentials } from "./credentials.ts";
import type { Material } from "./material.ts";

const FIRST: Material = {
  server: "https://h:6443",
  ca: "ca",
  certificate: null,
  token: new Secret("1"),
  proxy: null,
};
const withToken = (token: string): Material => ({ ...FIRST, token: new Secret(token) });

async function setup() {
  const clock = createFakeClock();
  const disk = { material: FIRST, missing: false, reads: 0 };
  const credentials = await createCredentials(async () => {
    disk.reads += 1;
    await Promise.resolve();
    if (disk.missing) throw new Error("missing");
    return disk.material;
  }, { clock, logger: silentLogger });
  return { clock, disk, credentials };
}

Deno.test("createCredentials() reads once a minute for current(), however often it is asked", async () => {
  const { clock, disk, credentials } = await setup();
  for (let second = 0; second < 180; second++) {
    await Promise.all([credentials.current(), credentials.current()]);
    await clock.advance(1_000);
  }
  assert.equal(disk.reads, 3);
});

Deno.test("createCredentials() gives what it knows while it cannot read, and tries again", async () => {
  const { clock, disk, credentials } = await setup();
  disk.missing = true;
  await clock.advance(60_000);
  assert.equal((await credentials.current()).token?.reveal(), "1");
  disk.missing = false;
  disk.material = withToken("2");
  assert.equal((await credentials.current()).token?.reveal(), "1");
  await clock.advance(60_000);
  assert.equal((await credentials.current()).token?.reveal(), "2");
});

Deno.test("renew() reads once for all that were refused at the same time", async () => {
  const { disk, credentials } = await setup();
  const used = await credentials.current();
  disk.material = withToken("2");
  const renewed = await Promise.all(Array.from({ length: 50 }, () => credentials.renew(used)));
  assert.deepEqual(new Set(renewed.map((material) => material?.token?.reveal())), new Set(["2"]));
  assert.equal(disk.reads, 2);
  // Refused later with what is old by now: known already.
  assert.equal((await credentials.renew(used))?.token?.reveal(), "2");
  assert.equal(disk.reads, 2);
});

Deno.test("renew() gives null when nothing has changed, and reads at most once a second then", async () => {
  const { clock, disk, credentials } = await setup();
  const used = await credentials.current();
  for (let i = 0; i < 20; i++) {
    assert.equal(await credentials.renew(used), null);
    await clock.advance(250);
  }
  assert.equal(disk.reads, 1 + 5);
});

Deno.test("createCredentials() never turns to another server", async () => {
  const { disk, credentials } = await setup();
  const used = await credentials.current();
  disk.material = { ...withToken("2"), server: "https://evil:6443" };
  assert.equal(await credentials.renew(used), null);
  assert.equal((await credentials.current()).server, "https://h:6443");
});

Deno.test("createCredentials() rejects when the first read fails", async () => {
  const clock = createFakeClock();
  await assert.rejects(
    createCredentials(() => Promise.reject(new Error("no file")), { clock, logger: silentLogger }),
    /no file/,
  );
});
