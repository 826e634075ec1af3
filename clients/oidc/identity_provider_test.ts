import assert from "node:assert/strict";

Deno.test("openid-client is loaded by the first sign-in, not by the start of the program", async () => {
  const folder = new URL(".", import.meta.url);
  const early: string[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (name.endsWith("_test.ts")) continue;
    const source = await Deno.readTextFile(new URL(name, folder));
    for (const [statement] of source.matchAll(/^(?:import|export) [^;]*"openid-client";/gm)) {
      if (!statement.startsWith("import type ")) early.push(`${name}: ${statement}`);
    }
  }
  assert.deepEqual(early, []);
});
