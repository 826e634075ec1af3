import assert from "node:assert/strict";
import { parseYaml, runsOn } from "../controller/model/workflow.ts";
import { isObject, objectOrEmpty } from "../lib/json_object.ts";
import { at, listAt } from "../tests/support/kube_manifests.ts";
import { run } from "../tests/support/process.ts";

const FOLDER = new URL("./samples/", import.meta.url).pathname;
const SAMPLES = {
  "vm-runtime-smoke.yaml": { name: "VM runtime smoke", job: "runtime", label: "vm-dev" },
  "vm-kind-smoke.yaml": { name: "VM kind smoke", job: "kind", label: "vm-dev" },
  "pod-runtime-smoke.yaml": { name: "Pod runtime smoke", job: "runtime", label: "pod" },
} as const;
type Sample = keyof typeof SAMPLES;

async function read(file: Sample): Promise<unknown> {
  return parseYaml(await Deno.readTextFile(FOLDER + file));
}

async function stepsOf(file: Sample) {
  return listAt(await read(file), "jobs", SAMPLES[file].job, "steps").filter(isObject);
}

/** The script of the step with that name. */
async function script(file: Sample, name: string): Promise<string> {
  const found = (await stepsOf(file)).find((step) => step["name"] === name);
  return String(found?.["run"] ?? assert.fail(`${file} has no step "${name}"`));
}

Deno.test("samples are those that are documented, started by hand, one job each", async () => {
  const files: string[] = [];
  for await (const { name } of Deno.readDir(FOLDER)) files.push(name);
  assert.deepEqual(files.sort(), Object.keys(SAMPLES).sort());
  for (const [file, { name, job, label }] of Object.entries(SAMPLES)) {
    const bytes = await Deno.readFile(FOLDER + file);
    const workflow = parseYaml(new TextDecoder().decode(bytes));
    assert.equal(at(workflow, "name"), name);
    assert.deepEqual(Object.keys(objectOrEmpty(at(workflow, "on"))), ["workflow_dispatch"]);
    assert.deepEqual(Object.keys(objectOrEmpty(at(workflow, "jobs"))), [job]);
    // As the controller reads them.
    assert.deepEqual(runsOn(bytes, job), ["self-hosted", label]);
    assert.ok(Number(at(workflow, "jobs", job, "timeout-minutes")) > 0, file);
  }
});

Deno.test("samples have scripts that bash can read, and that stop at the first failure", async () => {
  for (const file of Object.keys(SAMPLES) as Sample[]) {
    for (const step of await stepsOf(file)) {
      const text = step["run"];
      if (text === undefined) continue;
      await run("bash", ["-n", "-c", String(text)]);
      const cleaning = step["if"] !== undefined;
      const stops = /set -euo pipefail|bash -euo pipefail/.test(String(text));
      assert.ok(cleaning || stops, `${file}: ${step["name"]}`);
    }
  }
});

Deno.test("samples tell a socket from a file, in both spellings of the address", async () => {
  await using folder = await temporaryFolder();
  const listener = Deno.listen({ transport: "unix", path: `${folder.path}/agent.sock` });
  folder.defer(() => listener.close());
  await Deno.writeTextFile(`${folder.path}/file`, "");
  for (const file of ["vm-runtime-smoke.yaml", "pod-runtime-smoke.yaml"] as const) {
    const text = await script(file, "Identity socket");
    const tried = (address: string) =>
      run("bash", ["-c", text], { env: { SPIFFE_ENDPOINT_SOCKET: address } });
    await tried(`unix://${folder.path}/agent.sock`);
    await tried(`unix:${folder.path}/agent.sock`);
    await assert.rejects(tried(`unix://${folder.path}/file`), file);
  }
});

Deno.test("VM runtime smoke removes its container, whether or not that has run", async () => {
  const text = await script("vm-runtime-smoke.yaml", "Container");
  for (const [runs, passes] of [["echo vm-runtime-ok", true], ["exit 1", false]] as const) {
    await using programs = await standIns({ docker: `[ "$1" != run ] || ${runs}` });
    const tried = programs.run(text);
    if (passes) await tried;
    else await assert.rejects(tried);
    const calls = (await programs.calls()).map((call) => call.split(" ").slice(0, 2).join(" "));
    assert.deepEqual(calls, ["docker run", "docker rm"]);
  }
});

Deno.test("VM kind smoke always deletes its cluster, without kind's help if need be", async () => {
  const last = (await stepsOf("vm-kind-smoke.yaml")).at(-1);
  assert.equal(last?.["if"], "${{ always() }}");
  for (const [kind, used] of [["", ["kind"]], ["exit 1", ["kind", "docker"]]] as const) {
    await using programs = await standIns({ kind, docker: "" });
    await programs.run(String(last?.["run"]));
    assert.deepEqual((await programs.calls()).map((call) => call.split(" ")[0]), used);
  }
});

Deno.test("VM kind smoke refuses a download whose checksum is another one", async () => {
  await using folder = await temporaryFolder();
  const { path } = folder;
  const text = await script("vm-kind-smoke.yaml", "kind, checked");
  const check = text.indexOf("sha256sum --check");
  assert.ok(check >= 0 && check < text.indexOf("install -m"), "checked, then installed");
  const line = text.split("\n").find((one) => one.includes("sha256sum --check")) ?? "";
  await Deno.writeTextFile(`${path}/kind-linux-amd64`, "program");
  const { stdout } = await run("sha256sum", [`${path}/kind-linux-amd64`]);
  await Deno.writeTextFile(`${path}/sum`, stdout);
  await run("bash", ["-euo", "pipefail", "-c", line], { cwd: path });
  await Deno.writeTextFile(`${path}/kind-linux-amd64`, "another program");
  await assert.rejects(run("bash", ["-euo", "pipefail", "-c", line], { cwd: path }));
});

Deno.test("Pod runtime smoke writes the actions that it uses, one in Node and one in Python", async () => {
  await using folder = await temporaryFolder();
  const text = await script("pod-runtime-smoke.yaml", "Write two actions");
  await run("bash", ["-c", text], { cwd: folder.path });
  const uses = (await stepsOf("pod-runtime-smoke.yaml")).flatMap((step) => step["uses"] ?? []);
  const kinds: string[] = [];
  for (const use of uses) {
    const action = parseYaml(await Deno.readTextFile(`${folder.path}/${use}/action.yml`));
    const main = at(action, "runs", "main");
    if (main !== undefined) await Deno.stat(`${folder.path}/${use}/${main}`);
    const [step] = listAt(action, "runs", "steps");
    kinds.push(String(at(step, "shell") ?? at(action, "runs", "using")));
  }
  assert.match(kinds.join(" "), /^node\d+ python3 \{0\}$/);
});

/** A folder that goes with the test; what is deferred goes first. */
async function temporaryFolder() {
  const path = await Deno.makeTempDir();
  const stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(path, { recursive: true }));
  return {
    path,
    defer: (end: () => void) => stack.defer(end),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Programs that note how they were called, then do what their script says. */
async function standIns(scripts: Readonly<Record<string, string>>) {
  const folder = await temporaryFolder();
  const noted = `${folder.path}/calls`;
  await Deno.writeTextFile(noted, "");
  for (const [name, text] of Object.entries(scripts)) {
    const program = `#!/bin/sh\necho "${name} $*" >>"${noted}"\n${text}\n`;
    await Deno.writeTextFile(`${folder.path}/${name}`, program, { mode: 0o755 });
  }
  return {
    /** Runs a step's script with them; rejects when that fails. */
    run: (text: string) =>
      run("bash", ["-c", text], {
        cwd: folder.path,
        env: { PATH: `${folder.path}:${Deno.env.get("PATH")}` },
      }),
    calls: async () => (await Deno.readTextFile(noted)).trim().split("\n"),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
