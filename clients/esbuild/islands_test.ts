import assert from "node:assert/strict";
import { buildIslands } from "./islands.ts";

// stop() of esbuild kills its child without waiting for its exit.
const loose = { sanitizeOps: false, sanitizeResources: false };
const root = decodeURIComponent(new URL("../../", import.meta.url).pathname);

Deno.test(
  "buildIslands() builds split, hashed, bounded scripts and one style sheet",
  loose,
  async () => {
    const built = await buildIslands({
      root,
      entries: {
        now: "islands/now.tsx",
        assignment: "islands/assignment.tsx",
        style: "components/style/main.css",
      },
    });
    const now = built.entries.get("now");
    assert.match(now?.file ?? "", /^now-[A-Z0-9]{8}\.js$/);
    assert.match(built.entries.get("style")?.file ?? "", /^style-[A-Z0-9]{8}\.css$/);
    assert.deepEqual(now?.imports, built.entries.get("assignment")?.imports);
    assert.ok((now?.imports.length ?? 0) > 0);
    for (const [name, { bytes, type }] of built.files) {
      assert.match(type, name.endsWith(".css") ? /^text\/css/ : /^text\/javascript/);
      const text = new TextDecoder().decode(bytes);
      assert.ok(!text.includes(root), `${name} names a folder of this machine`);
      assert.ok(!/\b(zod|hono)\b/.test(text), `${name} carries a server's package`);
    }
  },
);

Deno.test(
  "buildIslands() rejects with the fault when a source does not compile",
  loose,
  async () => {
    const folder = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${folder}/broken.ts`, "export const x = ;");
      await assert.rejects(
        buildIslands({ root: folder, entries: { broken: "broken.ts" } }),
        /broken\.ts:1:17: ERROR: Unexpected ";"/,
      );
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
);
