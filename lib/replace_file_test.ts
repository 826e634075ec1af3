import assert from "node:assert/strict";
import { replaceFile, replaceFileDurably } from "./replace_file.ts";

for (const replace of [replaceFile, replaceFileDurably]) {
  Deno.test(`${replace.name}() replaces the whole file, closed to others, and leaves no draft`, async () => {
    const folder = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${folder}/state.json`, "a longer text than the new one");
      await Deno.writeTextFile(`${folder}/state.json.new`, "left by a crash", { mode: 0o644 });
      await replace(`${folder}/state.json`, "new");
      assert.equal(await Deno.readTextFile(`${folder}/state.json`), "new");
      assert.equal(((await Deno.stat(`${folder}/state.json`)).mode ?? 0) & 0o777, 0o600);
      assert.deepEqual((await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name), [
        "state.json",
      ]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
