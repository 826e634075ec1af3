import assert from "node:assert/strict";
import {
  imageConfig,
  type Instruction,
  lastStage,
  parseDockerfile,
} from "../tests/support/kube_dockerfile.ts";
import { run } from "../tests/support/process.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const read = (file: string) => Deno.readTextFile(ROOT + file);
const FILES = ["deploy/Dockerfile", "deploy/executor.Dockerfile"] as const;
const of = async (file: string) => parseDockerfile(await read(file));

/** What COPY takes from the repository. */
function sourcesOf(instructions: readonly Instruction[]): string[] {
  return instructions.filter((one) => one.keyword === "COPY" && one.flags.from === undefined)
    .flatMap((one) => one.text.split(/\s+/).slice(0, -1).map((path) => path.replace(/^\.\//, "")));
}

/** Files of the repository that a program imports. */
async function importsOf(entry: string): Promise<string[]> {
  const { stdout } = await run(Deno.execPath(), ["info", "--json", entry], { cwd: ROOT });
  const { modules } = JSON.parse(stdout) as { modules: { specifier: string }[] };
  return modules.map((one) => one.specifier).filter((one) => one.startsWith(`file://${ROOT}`))
    .map((one) => decodeURIComponent(one.slice(`file://${ROOT}`.length)))
    .filter((one) => !one.startsWith("node_modules/"));
}

Deno.test("Dockerfiles copy only what is there", async () => {
  for (const file of FILES) {
    const sources = sourcesOf(await of(file));
    assert.ok(sources.length > 5, file);
    for (const source of sources) await Deno.stat(ROOT + source);
  }
});

Deno.test("Dockerfiles copy everything that their programs import", async () => {
  const programs = {
    "deploy/Dockerfile": ["main.ts", "tools/register.ts"],
    "deploy/executor.Dockerfile": ["executor/main.ts", "deploy/bundle_gate.ts"],
  };
  for (const [file, entries] of Object.entries(programs)) {
    const sources = sourcesOf(await of(file));
    const covered = (path: string) =>
      sources.some((source) => path === source || path.startsWith(`${source}/`));
    for (const entry of entries) {
      const imports = await importsOf(entry);
      assert.ok(imports.length > 1, entry);
      assert.deepEqual(imports.filter((path) => !covered(path)), [], `${file}: ${entry}`);
    }
  }
});

Deno.test("Dockerfiles take Deno by the version that README names", async () => {
  const [, version] = /deno@(\d+\.\d+\.\d+) task start/.exec(await read("README.md")) ?? [];
  assert.ok(version !== undefined);
  for (const file of FILES) {
    const bases = (await of(file)).filter((one) => one.keyword === "FROM").map((one) => one.text);
    const deno = bases.filter((base) => base.startsWith("denoland/deno:"));
    assert.ok(deno.length > 0);
    for (const base of deno) assert.match(base, new RegExp(`:debian-${version}( AS |$)`));
    for (const base of bases) assert.doesNotMatch(base, /:latest|^[^:]+( |$)/, base);
  }
});

Deno.test("the executor's image has programs by exact version, closed to reading", async () => {
  const instructions = await of("deploy/executor.Dockerfile");
  const built = instructions.find((one) => one.text.includes("go install"))?.text ?? "";
  assert.match(built, /gitea\.com\/gitea\/runner@v1\.0\.8(\s|$)/);
  assert.match(built, /github\.com\/spiffe\/spire\/cmd\/spire-agent@v\d+\.\d+\.\d+(\s|$)/);
  const copied = lastStage(instructions).filter((one) => one.keyword === "COPY");
  const modeOf = (target: string) => {
    const one = copied.find((copy) => copy.text.endsWith(` ${target}`));
    return one === undefined ? "not copied" : `${one.flags.chown} ${one.flags.chmod}`;
  };
  assert.equal(modeOf("/usr/local/bin/gitea-runner"), "0:0 0711");
  assert.equal(modeOf("/usr/local/bin/deno"), "0:0 0711");
  assert.equal(modeOf("/opt/identity-gate/gate.mjs"), "0:0 0644");
  const installed = lastStage(instructions).find((one) => one.text.includes("apt-get"))?.text ?? "";
  for (const name of ["ca-certificates", "docker.io", "e2fsprogs", "git", "sudo"]) {
    assert.match(installed, new RegExp(`\\s${name.replaceAll(".", "\\.")}\\s`), name);
  }
});

Deno.test("images are run directly, by a user that is not root", async () => {
  const executor = imageConfig(await of("deploy/executor.Dockerfile"));
  assert.equal(executor.user, "2000:2000");
  assert.equal(executor.entrypoint[0], "/usr/local/bin/deno");
  assert.equal(executor.entrypoint.at(-1), "/opt/identity-gate/gate.mjs");
  assert.equal(executor.environment["CI_RUNNER_BIN"], "/usr/local/bin/gitea-runner");
  const controller = imageConfig(await of("deploy/Dockerfile"));
  assert.equal(controller.user, "1000:1000");
  assert.equal(controller.entrypoint.at(-1), "main.ts");
  const { tasks } = JSON.parse(await read("deno.json")) as {
    tasks: { start: { command: string } };
  };
  const [flag] = tasks.start.command.match(/--v8-flags=\S+/) ?? [];
  assert.ok(flag !== undefined && controller.entrypoint.includes(flag), String(flag));
});

Deno.test("start-docker is a script that a shell can read", async () => {
  await run("sh", ["-n", `${ROOT}deploy/start-docker`]);
  const { mode } = await Deno.stat(`${ROOT}deploy/start-docker`);
  assert.equal((mode ?? 0) & 0o111, 0o111);
});
