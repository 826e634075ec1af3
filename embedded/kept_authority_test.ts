import assert from "node:assert/strict";
import { keepAuthority } from "./kept_authority.ts";

const NOW = Date.parse("2027-01-15T08:00:00Z");
const HOUR_MS = 3_600_000;

Deno.test("keepAuthority() keeps one CA, and makes another for a clock that was years ahead at first", async () => {
  const directory = await Deno.makeTempDir();
  const kept = async (now: number) => {
    const options = { trustDomain: "test.example", now, leftMs: HOUR_MS };
    return (await keepAuthority(directory, options)).bundleDer.toHex();
  };
  try {
    const ahead = await kept(NOW + 4 * 365 * 24 * HOUR_MS);
    const right = await kept(NOW);
    assert.notEqual(right, ahead);
    assert.equal(await kept(NOW - 30_000), right);
    assert.equal(await kept(NOW + 365 * 24 * HOUR_MS), right);
    assert.notEqual(await kept(NOW + 10 * 365 * 24 * HOUR_MS), right);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
