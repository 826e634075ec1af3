import assert from "node:assert/strict";
import { readIfThere, removeIfThere, statIfThere } from "./if_there.ts";

Deno.test("what is absent, or below a file, is nothing: to read, to look at, to remove", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/file`, "text");
    assert.equal(await readIfThere(`${folder}/file`), "text");
    assert.equal((await statIfThere(`${folder}/file`))?.size, 4);
    for (const name of ["absent", "file/below"]) {
      assert.equal(await readIfThere(`${folder}/${name}`), undefined);
      assert.equal(await statIfThere(`${folder}/${name}`), undefined);
      await removeIfThere(`${folder}/${name}`);
    }
    await assert.rejects(readIfThere(folder));
    await assert.rejects(removeIfThere(folder), /not empty/i);
    await removeIfThere(folder, { recursive: true });
    assert.equal(await statIfThere(folder), undefined);
  } finally {
    await removeIfThere(folder, { recursive: true });
  }
});
