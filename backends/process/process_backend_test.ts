import assert from "node:assert/strict";
import type { Backend, Executor } from "../../controller/backend.ts";
import { BackendError } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { specOf } from "../../tests/contract/backend_suite.ts";
import { createFakeProcessIdentity } from "../../tests/fakes/process_identity.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { testUserIds } from "../../tests/support/user_ids.ts";
import { claimFolder } from "./folder.ts";
import { bootId, isAlive, listProcesses, type ProcessRef, readStat, self } from "./proc.ts";
import { createProcessBackend, type ProcessBackendOptions } from "./process_backend.ts";

const call = { signal: new AbortController().signal };
const isRoot = Deno.uid() === 0;
/** Waits to be ended. */
const WAIT = "touch up; while :; do sleep 0.05; done";

async function setup(script: string, options: Partial<ProcessBackendOptions> = {}) {
  const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "gdr-process-" });
  await Deno.chmod(directory, 0o711);
  const identity = createFakeProcessIdentity();
  const open = (): Backend & AsyncDisposable =>
    createProcessBackend({
      name: "pod",
      directory,
      command: ["sh", "-c", script],
      environment: { FROM_CONTROLLER: "yes" },
      identity,
      userIds: null,
      clock: systemClock,
      logger: silentLogger,
      graceMs: 300,
      pollMs: 20,
      ...options,
    });
  const backend = open();
  const home = (name: ExecutorName) => `${directory}/${name}/home`;
  return {
    directory,
    identity,
    backend,
    open,
    home,
    /** Makes an executor and waits until its program runs. */
    async make(task = "1"): Promise<Executor> {
      const made = await backend.create(specOf(task, "pod"), call);
      await eventually(() => Deno.stat(`${home(made.name)}/up`), { what: "the program" });
      return made;
    },
    async [Symbol.asyncDispose]() {
      await using last = createProcessBackend({
        name: "pod",
        directory,
        command: ["true"],
        environment: {},
        identity: createFakeProcessIdentity(),
        userIds: null,
        clock: systemClock,
        logger: silentLogger,
        graceMs: 0,
      });
      for (const executor of await last.list(call)) await last.delete(executor, call);
      await backend[Symbol.asyncDispose]();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

async function metaOf(directory: string, name: string) {
  const meta: { process: ProcessRef } & Record<string, unknown> = JSON.parse(
    await Deno.readTextFile(`${directory}/${name}/meta.json`),
  );
  return meta;
}

const ended = (backend: Backend, name: ExecutorName) =>
  eventually(async () => (await backend.find(name, call))?.ended ?? undefined, { what: "the end" });

Deno.test("an executor outlives a controller that is killed, and its exit code is known afterwards", async () => {
  await using world = await setup(WAIT);
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const spec = specOf("1", "pod");
  const script = `
    const { createProcessBackend } = await import(${url("./process_backend.ts")});
    const { systemClock } = await import(${url("../../lib/clock.ts")});
    const { silentLogger } = await import(${url("../../lib/logger.ts")});
    const { createFakeProcessIdentity } = await import(${
    url("../../tests/fakes/process_identity.ts")
  });
    const backend = createProcessBackend({
      name: "pod", directory: ${JSON.stringify(world.directory)}, environment: {}, userIds: null,
      command: ["sh", "-c", "touch up; while [ ! -f end ]; do sleep 0.02; done; echo bye; exit 9"],
      identity: createFakeProcessIdentity(), clock: systemClock, logger: silentLogger,
    });
    await backend.create(${JSON.stringify(spec)}, { signal: new AbortController().signal });
    Deno.kill(Deno.pid, "SIGKILL");
  `;
  const killed = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
  assert.equal(killed.signal, "SIGKILL", new TextDecoder().decode(killed.stderr));
  const found = await world.backend.find(spec.name, call);
  assert.equal(found?.ended, null);
  assert.deepEqual(found?.metadata, spec.metadata);
  await eventually(() => Deno.stat(`${world.home(spec.name)}/up`), { what: "the program" });
  await Deno.writeTextFile(`${world.home(spec.name)}/end`, "");
  const { process } = await metaOf(world.directory, spec.name);
  await eventually(async () => !(await isAlive(process)), { what: "the end" });
  const ending = await ended(world.open(), spec.name);
  assert.deepEqual([ending.exitCode, ending.lastLines], [9, ["bye"]]);
});

Deno.test("the capability is neither on disk nor in the wrapper's arguments, environment and memory", async () => {
  await using world = await setup(WAIT);
  const { name } = await world.make();
  const capability = specOf("1", "pod").environment["CI_RUNNER_CAPABILITY"] ?? "";
  for await (const path of filesOf(`${world.directory}/${name}`)) {
    assert.ok(!(await Deno.readTextFile(path)).includes(capability), path);
  }
  const { process: { pid } } = await metaOf(world.directory, name);
  for (const file of ["cmdline", "environ"]) {
    assert.ok(!(await Deno.readTextFile(`/proc/${pid}/${file}`)).includes(capability), file);
  }
  const main = await readStat(
    Number.parseInt(await Deno.readTextFile(`${world.directory}/${name}/main`), 10),
  );
  assert.ok(main !== undefined);
  assert.ok((await Deno.readTextFile(`/proc/${main.pid}/environ`)).includes(capability));
  // The same search does find it in the program itself.
  if (isRoot) {
    assert.equal(await memoryHolds(main.pid, capability), true);
    assert.equal(await memoryHolds(pid, capability), false);
  }
});

Deno.test("create() gives HOME and TMPDIR of its own, and the socket, over everything else", async () => {
  await using world = await setup("env -0 >e.new; mv e.new environment; touch up; exec sleep 60", {
    environment: { HOME: "/root", FROM_CONTROLLER: "yes", CI_GRACE_SECONDS: "77" },
  });
  const { name } = await world.make();
  const environment = (await Deno.readTextFile(`${world.home(name)}/environment`)).split("\0");
  const folder = `${world.directory}/${name}`;
  for (
    const setting of [
      `HOME=${folder}/home`,
      `TMPDIR=${folder}/tmp`,
      "FROM_CONTROLLER=yes",
      "CI_GRACE_SECONDS=77",
      `SPIFFE_ENDPOINT_SOCKET=unix:///run/example/${name}.sock`,
    ]
  ) assert.ok(environment.includes(setting), setting);
});

Deno.test("create() leaves nothing when the Workload API socket cannot be had", async () => {
  await using world = await setup(WAIT);
  world.identity.before = (method) =>
    method === "endpoint" ? Promise.reject(new Error("no socket")) : Promise.resolve();
  await assert.rejects(world.backend.create(specOf("1", "pod"), call), /no socket/);
  assert.deepEqual(await world.backend.list(call), []);
  assert.deepEqual([...Deno.readDirSync(world.directory)], []);
});

Deno.test("create() refuses names that are no DNS label and variables that are none", async () => {
  await using world = await setup(WAIT);
  const spec = specOf("1", "pod");
  for (const name of ["../x", "", "A", ".new-1", "a/b"]) {
    await assert.rejects(
      world.backend.create({ ...spec, name: name as ExecutorName }, call),
      (error) => error instanceof BackendError && error.code === "invalid" && !error.retryable,
    );
  }
  await assert.rejects(
    world.backend.create({ ...spec, environment: { "A B": "x" } }, call),
    (error) => error instanceof BackendError && error.code === "invalid",
  );
  assert.deepEqual([...Deno.readDirSync(world.directory)], []);
});

Deno.test("create() takes over a folder that a killed controller left half made, not one being made", async () => {
  await using world = await setup(WAIT);
  const spec = specOf("1", "pod");
  const creator = {
    backend: "pod",
    instance: "other",
    process: await self(),
    bootId: await bootId(),
  } as const;
  const options = { name: spec.name, creator, id: "1" };
  const folder = await claimFolder(world.directory, options);
  assert.ok(folder !== undefined);
  assert.equal(await world.backend.find(spec.name, call), undefined);
  await assert.rejects(
    world.backend.create(spec, call),
    (error) => error instanceof BackendError && error.code === "conflict",
  );
  const dead = { ...creator, process: { ...creator.process, startTime: "1" } };
  await Deno.writeTextFile(`${folder}/creator`, JSON.stringify(dead));
  assert.equal((await world.backend.create(spec, call)).ended, null);
});

Deno.test("leftovers of deletes and creates that were killed are removed by the next controller", async () => {
  await using world = await setup(WAIT);
  const dead = {
    backend: "pod",
    instance: "other",
    process: { pid: 1, startTime: "0" },
    bootId: await bootId(),
  };
  for (const name of [".gone-1", ".new-2"]) {
    await Deno.mkdir(`${world.directory}/${name}/home`, { recursive: true });
    await Deno.writeTextFile(`${world.directory}/${name}/creator`, JSON.stringify(dead));
  }
  assert.deepEqual(await world.backend.list(call), []);
  assert.deepEqual([...Deno.readDirSync(world.directory)], []);
});

const STRAYS = `setsid sh -c 'echo $$ >stray; exec sleep 60' & sleep 60 & ${WAIT}`;

for (const userIds of [null, testUserIds(0, 64)]) {
  Deno.test({
    name: `delete() ends everything the executor started${
      userIds === null ? "" : ", also of another environment"
    }`,
    ignore: userIds !== null && !isRoot,
    async fn() {
      const script = userIds === null ? STRAYS : STRAYS.replace("exec sleep", "exec env -i sleep");
      await using world = await setup(script, { userIds });
      const made = await world.make();
      const stray = Number(
        await eventually(async () => {
          return (await Deno.readTextFile(`${world.home(made.name)}/stray`)).trim() || undefined;
        }, { what: "the stray process" }),
      );
      const { process } = await metaOf(world.directory, made.name);
      const before = await listProcesses();
      const session = before.filter((stat) => stat.session === process.pid);
      assert.ok(session.length >= 3, String(session.length));
      const all = [...session, ...before.filter(({ pid }) => pid === stray)];
      await world.backend.delete(made, call);
      for (const stat of all) assert.equal(await isAlive(stat), false, String(stat.pid));
      assert.equal(await world.backend.find(made.name, call), undefined);
    },
  });
}

Deno.test("delete() lets the program end by itself within its time, and kills it after that", async () => {
  await using world = await setup(`trap 'echo x >$HOME/../../heard; exit 0' TERM; ${WAIT}`);
  await world.backend.delete(await world.make("1"), call);
  assert.equal(await Deno.readTextFile(`${world.directory}/heard`), "x\n");
  await using deaf = await setup(`trap '' TERM; ${WAIT}`);
  const start = performance.now();
  await deaf.backend.delete(await deaf.make("2"), call);
  const took = performance.now() - start;
  assert.ok(took >= 300 && took < 3000, String(took));
});

Deno.test("a process that only has the recorded pid is neither taken for the executor nor killed", async () => {
  await using world = await setup(WAIT);
  const made = await world.make();
  const path = `${world.directory}/${made.name}/meta.json`;
  const meta = await metaOf(world.directory, made.name);
  Deno.kill(-meta.process.pid, "SIGKILL");
  await ended(world.backend, made.name);
  const bystander = new Deno.Command("setsid", { args: ["sleep", "60"] }).spawn();
  const reused = { ...meta, process: { ...meta.process, pid: bystander.pid } };
  await Deno.writeTextFile(path, JSON.stringify(reused));
  await Deno.writeTextFile(`${world.directory}/${made.name}/exit`, "");
  const seen = await world.backend.find(made.name, call);
  assert.deepEqual([seen?.ended?.code, seen?.ended?.exitCode], ["executor_lost", null]);
  await world.backend.delete(made, call);
  assert.notEqual(await readStat(bystander.pid), undefined);
  bystander.kill("SIGKILL");
  await bystander.status;
});

Deno.test("an executor of an earlier boot has ended, and nothing is killed for it", async () => {
  await using world = await setup(WAIT);
  const made = await world.make();
  const meta = await metaOf(world.directory, made.name);
  const path = `${world.directory}/${made.name}/meta.json`;
  await Deno.writeTextFile(path, JSON.stringify({ ...meta, bootId: "earlier" }));
  const seen = await world.backend.find(made.name, call);
  assert.deepEqual([seen?.ended?.code, seen?.ended?.detail], [
    "executor_lost",
    "the machine was restarted",
  ]);
  await Deno.writeTextFile(path, JSON.stringify(meta));
});

Deno.test("a program whose wrapper was killed still runs; then it has vanished", async () => {
  await using world = await setup(WAIT);
  const made = await world.make();
  const { process } = await metaOf(world.directory, made.name);
  await eventually(
    async () => (await Deno.readTextFile(`${world.directory}/${made.name}/main`)) !== "",
    {
      what: "the note of the wrapper",
    },
  );
  Deno.kill(process.pid, "SIGKILL");
  await eventually(async () => !(await isAlive(process)), { what: "the end of the wrapper" });
  assert.equal((await world.backend.find(made.name, call))?.ended, null);
  const main = Number.parseInt(await Deno.readTextFile(`${world.directory}/${made.name}/main`), 10);
  Deno.kill(main, "SIGKILL");
  assert.deepEqual(
    (await ended(world.backend, made.name)).detail,
    "its process vanished without an exit code",
  );
});

Deno.test("what the job notes in its folder keeps nobody alive and hides nobody", async () => {
  // Without a user of its own it can replace the files: a pipe would never open.
  await using world = await setup(
    `cd ..; rm output exit; mkfifo output; mkdir exit; cd home; ${WAIT}`,
  );
  const made = await world.make("1");
  const other = await world.backend.create(specOf("2", "pod"), call);
  const folder = `${world.directory}/${made.name}`;
  const { process } = await metaOf(world.directory, made.name);
  const main = await eventually(
    async () => Number.parseInt(await Deno.readTextFile(`${folder}/main`), 10) || undefined,
    { what: "the note of the wrapper" },
  );
  Deno.kill(process.pid, "SIGKILL");
  const own = (await Deno.readTextFile("/proc/self/stat")).split(") ");
  const claimed = own[1]?.replace(/^(\S+ \S+ \S+) \S+/, `$1 ${process.pid}`) ?? "";
  await Deno.writeTextFile(`${folder}/main`, `${own[0]}) ${claimed}`);
  Deno.kill(main, "SIGKILL");
  const ending = await ended(world.backend, made.name);
  assert.deepEqual([ending.code, ending.lastLines], ["executor_lost", []]);
  const watching = new AbortController();
  for await (const { name } of world.backend.watch({ signal: watching.signal })) {
    if (name === other.name) watching.abort();
  }
  assert.equal((await world.backend.list(call)).length, 2);
});

Deno.test("an ending names the gate's exit code or the signal", async () => {
  for (
    const [script, detail] of [
      ["exit 10", "exit code 10: no SVID for the job's identity came in time"],
      ["exit 99", "exit code 99"],
      ["kill -KILL $$", "killed by SIGKILL"],
    ] as const
  ) {
    await using world = await setup(script);
    const made = await world.backend.create(specOf("1", "pod"), call);
    assert.equal((await ended(world.backend, made.name)).detail, detail);
  }
});

Deno.test("last lines hold no control characters and the output does not grow for ever", async () => {
  const line = String.raw`printf '\n\033[31mred\033[0m \007bell\n'`;
  await using world = await setup(
    `head -c 6000000 /dev/zero | tr '\\0' x | fold -w 100; ${line}; ${WAIT}`,
  );
  const made = await world.make();
  const controller = new AbortController();
  const watching = (async () => {
    for await (const _ of world.backend.watch({ signal: controller.signal }));
  })();
  const output = `${world.directory}/${made.name}/output`;
  await eventually(async () => (await Deno.stat(output)).size < 100_000, { what: "the cut" });
  controller.abort();
  await watching;
  const { process } = await metaOf(world.directory, made.name);
  Deno.kill(-process.pid, "SIGKILL");
  assert.equal((await ended(world.backend, made.name)).lastLines.at(-1), "red  bell");
});

Deno.test({
  name: "each executor has a user of its own, which is given again only when it is free",
  ignore: !isRoot,
  async fn() {
    const userIds = testUserIds(64, 2);
    const { first } = userIds;
    await using world = await setup(`id -u >who; ${WAIT}`, { userIds });
    const one = await world.make("1");
    const two = await world.make("2");
    assert.deepEqual([one.identityTarget, two.identityTarget], [`${first}`, `${first + 1}`]);
    assert.equal(await Deno.readTextFile(`${world.home(two.name)}/who`), `${first + 1}\n`);
    await assert.rejects(
      world.backend.create(specOf("3", "pod"), call),
      (error) => error instanceof BackendError && error.code === "quota",
    );
    await world.backend.delete(one, call);
    assert.equal((await world.make("3")).identityTarget, `${first}`);
    const modeOf = async (path: string) => ((await Deno.stat(path)).mode ?? 0) & 0o777;
    const folder = `${world.directory}/${two.name}`;
    assert.equal(await modeOf(`${folder}/meta.json`), 0o600);
    assert.equal((await Deno.stat(`${folder}/meta.json`)).uid, 0);
    assert.equal(await modeOf(folder), 0o711);
    assert.equal(await modeOf(`${folder}/home`), 0o700);
    assert.equal((await Deno.stat(`${folder}/home`)).uid, first + 1);
  },
});

Deno.test({
  name: "users are given in turn, also by the next controller",
  ignore: !isRoot,
  async fn() {
    const userIds = testUserIds(70, 3);
    await using world = await setup("exit 0", { userIds });
    const given: (string | null)[] = [];
    for (const task of ["1", "2", "3", "4"]) {
      await using backend = world.open();
      const made = await backend.create(specOf(task, "pod"), call);
      given.push(made.identityTarget);
      await backend.delete(made, call);
    }
    assert.deepEqual(given.map((id) => Number(id) - userIds.first), [0, 1, 2, 0]);
  },
});

Deno.test("delete() lets an executor that is frozen end by itself", async () => {
  await using world = await setup(`trap 'echo x >ended; exit 0' TERM; ${WAIT}`, {
    graceMs: 60_000,
  });
  const made = await world.make();
  using ended = await Deno.open(`${world.home(made.name)}/ended`, { create: true, write: true });
  Deno.kill(-Number(made.uid.split("-")[0]), "SIGSTOP");
  await world.backend.delete(made, call);
  assert.equal((await ended.stat()).size, 2);
});

Deno.test({
  name: "delete() ends what forks faster than it can be looked for",
  ignore: !isRoot,
  async fn() {
    // Each generation lives for a moment, ignores SIGTERM, and carries no mark of the executor.
    const comet = `trap "" TERM; exec 9>>beat; c() { echo . >&9; c & exit 0; }; c &`;
    await using world = await setup(
      `umask 0; : >beat; env -i setsid sh -c '${comet}'; ${WAIT}`,
      { userIds: testUserIds(74, 2) },
    );
    const made = await world.make();
    const size = async () => (await beat.stat()).size;
    using beat = await Deno.open(`${world.home(made.name)}/beat`);
    await eventually(async () => await size() > 20, { what: "the comet" });
    await world.backend.delete(made, call);
    const atDelete = await size();
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(await size(), atDelete, "nothing writes any more");
  },
});

Deno.test({
  name: "two controllers of one machine never give the same user",
  ignore: !isRoot,
  async fn() {
    const userIds = testUserIds(80, 8);
    await using one = await setup("exit 0", { userIds });
    await using two = await setup("exit 0", { userIds });
    const made = await Promise.all(
      ["1", "2", "3", "4"].flatMap((task) =>
        [one, two].map((world) => world.backend.create(specOf(task, "pod"), call))
      ),
    );
    assert.equal(new Set(made.map(({ identityTarget }) => identityTarget)).size, 8);
  },
});

async function* filesOf(directory: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(directory)) {
    if (isDirectory) yield* filesOf(`${directory}/${name}`);
    else yield `${directory}/${name}`;
  }
}

/** Searches the writable memory of a process. */
async function memoryHolds(pid: number, text: string): Promise<boolean> {
  using memory = await Deno.open(`/proc/${pid}/mem`);
  for (const line of (await Deno.readTextFile(`/proc/${pid}/maps`)).split("\n")) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
    if (match === null) continue;
    const [from, to] = [Number.parseInt(match[1] ?? "", 16), Number.parseInt(match[2] ?? "", 16)];
    await memory.seek(from, Deno.SeekMode.Start);
    const bytes = new Uint8Array(to - from);
    for (let at = 0; at < bytes.length;) {
      const read = await memory.read(bytes.subarray(at));
      if (read === null) break;
      at += read;
    }
    if (new TextDecoder("latin1").decode(bytes).includes(text)) return true;
  }
  return false;
}
