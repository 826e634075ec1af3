import assert from "node:assert/strict";
import { abortable } from "./abortable.ts";
import { systemClock } from "./clock.ts";
import { keepEnd, readEnd, readStart } from "./foreign_file.ts";

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("readStart() and readEnd() give no more than was asked of a long file", () =>
  inFolder(async (folder) => {
    const file = `${folder}/output`;
    await Deno.writeTextFile(file, `first ${"x".repeat(20_000)} last`);
    assert.equal(await readStart(file, 5), "first");
    const end = await readEnd(file);
    assert.equal(end.length, 16 * 1024);
    assert.ok(end.endsWith("x last"));
  }));

Deno.test("readStart() and readEnd() follow no link, open no pipe, and bear that nothing is there", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/secret`, "not for them");
    await Deno.symlink(`${folder}/secret`, `${folder}/link`);
    const made = await new Deno.Command("mkfifo", { args: [`${folder}/pipe`] }).output();
    assert.equal(made.success, true);
    for (const name of ["link", "pipe", "nothing", "secret/below"]) {
      assert.equal(await readStart(`${folder}/${name}`, 9), undefined, name);
      assert.equal(await readEnd(`${folder}/${name}`), "", name);
      await keepEnd(`${folder}/${name}`, 0);
    }
    assert.equal(await Deno.readTextFile(`${folder}/secret`), "not for them");
  }));

Deno.test("readStart(), readEnd() and keepEnd() wait for nobody when a pipe takes a file's place", () =>
  inFolder(async (folder) => {
    const [file, pipe, place] = [`${folder}/file`, `${folder}/pipe`, `${folder}/output`];
    await Deno.writeTextFile(file, "x".repeat(20_000));
    await new Deno.Command("mkfifo", { args: [pipe] }).output();
    const put = async (what: string) => {
      await Deno.link(what, `${folder}/next`);
      await Deno.rename(`${folder}/next`, place);
    };
    const looks = [
      () => readStart(place, 9),
      () => readEnd(place),
      () => keepEnd(place, 10_000),
    ];
    using limit = systemClock.timeout(20_000);
    for (let turn = 0; turn < 300; turn++) {
      await put(file);
      // While the file is looked at.
      const swapped = put(pipe);
      await abortable(Promise.all(looks.map((look) => look())), limit.signal);
      await swapped;
    }
  }));

Deno.test("keepEnd() cuts only what is over the bound, and keeps the newest", () =>
  inFolder(async (folder) => {
    const file = `${folder}/output`;
    await Deno.writeTextFile(file, `${"x".repeat(30_000)}end`);
    await keepEnd(file, 40_000);
    assert.equal((await Deno.stat(file)).size, 30_003);
    await keepEnd(file, 20_000);
    const left = await Deno.readTextFile(file);
    assert.equal(left.length, 16 * 1024);
    assert.ok(left.endsWith("xend"));
  }));
