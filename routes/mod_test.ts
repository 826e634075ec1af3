import assert from "node:assert/strict";
import { createAddresses } from "../web/addresses.ts";
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

/** Every address of an action, each with the kind that its role and the audit are asked by. */
const ACTIONS: Readonly<Record<string, string | null>> = {
  "/actions/assignments/i/cancel": "cancel i",
  "/actions/assignments/i/retry": "retry i",
  "/actions/assignments/i/release": "release i",
  "/actions/assignments/i/undo": null,
  "/actions/backends/n/cordon": "cordon n",
  "/actions/backends/n/drain": "drain n",
  "/actions/backends/n/resume": "resume n",
  "/actions/backends/n/capacity": "capacity n",
  "/actions/backends/n/label": "label n",
  "/actions/executors/n/release": "release-executor n",
  "/actions/leader/step-down": "step-down leader",
  "/actions/operations/i/undo": "undo i",
  "/api/v1/assignments/i/cancel": "cancel i",
  "/api/v1/assignments/i/release": "release i",
  "/api/v1/assignments/i/retry": "retry i",
  "/api/v1/backends/n/capacity": "capacity n",
  "/api/v1/backends/n/cordon": "cordon n",
  "/api/v1/backends/n/drain": "drain n",
  "/api/v1/backends/n/label": "label n",
  "/api/v1/backends/n/resume": "resume n",
  "/api/v1/executors/n/release": "release-executor n",
  "/api/v1/leader/step-down": "step-down leader",
  "/api/v1/operations/i/undo": "undo i",
  "/assignments/i/retry": "retry i",
  "/health/run": null,
  // A page, and no action.
  "/assignments/i/cancel": null,
  "/api/v1/assignments/%2Fa%/retry": "retry %2Fa%",
  "/api/v1/assignments/a%2Fb/retry": "retry a/b",
};

Deno.test("action() names what every address asks for", () => {
  const addresses = createAddresses(Object.values(ROUTES));
  for (const [path, said] of Object.entries(ACTIONS)) {
    const found = addresses.action(path);
    assert.equal(found === undefined ? null : `${found.kind} ${found.target}`, said, path);
  }
  for (const route of Object.values(ROUTES)) {
    if (route.kind !== "action") continue;
    const pattern = new RegExp(`^${route.path.replace(/:\w+/g, "[^/]+")}$`);
    assert.ok(Object.keys(ACTIONS).some((path) => pattern.test(path)), `${route.path} is listed`);
  }
});
