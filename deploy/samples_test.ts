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

Deno.test("samples prove the identity's socket", async () => {
  for (const file of ["vm-runtime-smoke.yaml", "pod-runtime-smoke.yaml"] as const) {
    const text = await script(file, "Identity socket");
    assert.match(text, /socket=\$\{SPIFFE_ENDPOINT_SOCKET#unix:\}/);
    assert.match(text, /^test -S "\$socket"$/m);
  }
});

Deno.test("samples tell a socket from a file, in both spellings of the address", async () => {
  const text = await script("pod-runtime-smoke.yaml", "Identity socket");
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const listener = Deno.listen({ transport: "unix", path: `${folder}/agent.sock` });
  stack.defer(() => listener.close());
  await Deno.writeTextFile(`${folder}/file`, "");
  const tried = (address: string) =>
    run("bash", ["-c", text], { env: { SPIFFE_ENDPOINT_SOCKET: address } });
  await tried(`unix://${folder}/agent.sock`);
  await tried(`unix:${folder}/agent.sock`);
  await assert.rejects(tried(`unix://${folder}/file`));
});

Deno.test("VM runtime smoke shows Docker and removes its container by trap", async () => {
  const docker = await script("vm-runtime-smoke.yaml", "Docker");
  for (const part of ["{{.Server.Version}}", "{{.Driver}}", "{{.CgroupVersion}}"]) {
    assert.ok(docker.includes(part), part);
  }
  const container = await script("vm-runtime-smoke.yaml", "Container");
  assert.match(container, /^trap 'docker rm --force vm-runtime-smoke .*' EXIT$/m);
  assert.match(container, /docker run --name vm-runtime-smoke alpine:3\.22 /);
  assert.match(container, /x86_64 && echo vm-runtime-ok/);
  assert.ok(container.indexOf("trap") < container.indexOf("docker run"), "the trap comes first");
});

Deno.test("VM kind smoke checks what it fetches and always deletes its cluster", async () => {
  const file = "vm-kind-smoke.yaml";
  assert.equal(at(await read(file), "env", "KIND_VERSION"), "v0.33.0");
  const fetched = await script(file, "kind, checked");
  assert.match(fetched, /sha256sum --check --strict/);
  assert.ok(fetched.indexOf("sha256sum --check") < fetched.indexOf("install -m"), "then installed");
  assert.match(
    await script(file, "Cluster"),
    /^kind create cluster --name smoke --wait 180s --retain$/m,
  );
  assert.match(await script(file, "Nest cgroup v2"), /cgroup\.subtree_control/);
  assert.match(await script(file, "Docker of this job"), /ext4/);
  const steps = await stepsOf(file);
  const last = steps.at(-1);
  assert.equal(last?.["if"], "${{ always() }}");
  assert.match(String(last?.["run"]), /^kind delete cluster --name smoke/);
  assert.equal(steps.at(-2)?.["if"], "${{ failure() }}");
});

Deno.test("VM kind smoke refuses a download whose checksum is another one", async () => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const line = (await script("vm-kind-smoke.yaml", "kind, checked")).split("\n")
    .find((one) => one.includes("sha256sum --check")) ?? assert.fail("no check");
  await Deno.writeTextFile(`${folder}/kind-linux-amd64`, "program");
  const { stdout } = await run("sha256sum", [`${folder}/kind-linux-amd64`]);
  await Deno.writeTextFile(`${folder}/sum`, stdout);
  await run("bash", ["-euo", "pipefail", "-c", line], { cwd: folder });
  await Deno.writeTextFile(`${folder}/kind-linux-amd64`, "another program");
  await assert.rejects(run("bash", ["-euo", "pipefail", "-c", line], { cwd: folder }));
});

Deno.test("Pod runtime smoke runs an action in Node and one in Python", async () => {
  const uses = (await stepsOf("pod-runtime-smoke.yaml")).flatMap((step) => step["uses"] ?? []);
  assert.deepEqual(uses, ["./.smoke/node", "./.smoke/python"]);
  const written = await script("pod-runtime-smoke.yaml", "Write two actions");
  assert.match(written, /using: node24/);
  assert.match(written, /shell: python3 \{0\}/);
});
