import assert from "node:assert/strict";
import { ROUTES } from "./mod.ts";

const FOLDER = decodeURIComponent(new URL("./", import.meta.url).pathname);

async function filesBelow(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const entry of Deno.readDir(FOLDER + folder)) {
    const path = `${folder}${entry.name}`;
    if (entry.isDirectory) files.push(...await filesBelow(`${path}/`));
    else if (!/_test\.tsx?$/.test(path) && path !== "mod.ts") files.push(path);
  }
  return files;
}

Deno.test("ROUTES has every file of the folder", async () => {
  assert.deepEqual((await filesBelow("")).sort(), Object.keys(ROUTES).sort());
});

Deno.test("ROUTES has each file under the path that its name says", async () => {
  for (const [file, route] of Object.entries(ROUTES)) {
    const module = await import(`./${file}`);
    assert.equal(module.default, route, file);
    const said = `/${file.replace(/(^|\/)?(index)?\.tsx?$/, "")}`.replace(/\[(\w+)\]/g, ":$1")
      .replaceAll("_", "-");
    // A file's name cannot have the second extension.
    assert.equal(route.path.replace(/\.json$/, ""), said, file);
  }
});
