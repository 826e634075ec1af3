import assert from "node:assert/strict";
import { closedFolder } from "./closed_folder.ts";

Deno.test("closedFolder() names the topmost folder that others cannot enter, the last one included", async () => {
  const top = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${top}/a/b`, { recursive: true });
    for (const folder of [top, `${top}/a`, `${top}/a/b`]) await Deno.chmod(folder, 0o711);
    assert.equal(await closedFolder(`${top}/a/b`), undefined);
    await Deno.chmod(`${top}/a/b`, 0o750);
    assert.equal(await closedFolder(`${top}/a/b`), `${top}/a/b`);
    await Deno.chmod(`${top}/a`, 0o700);
    assert.equal(await closedFolder(`${top}/a/b`), `${top}/a`);
  } finally {
    await Deno.remove(top, { recursive: true });
  }
});
