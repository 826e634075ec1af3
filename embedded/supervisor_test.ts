import assert from "node:assert/strict";
import { isAlive, readStat } from "../backends/process/proc.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { eventually } from "../tests/support/eventually.ts";
import { ChildError, type ChildSpec } from "./child_process.ts";
import { createSupervisor, type Supervisor } from "./supervisor.ts";

const call = { signal: new AbortController().signal };
const env = { PATH: "/usr/bin:/bin" };

async function setup() {
  const directory = await Deno.makeTempDir({ prefix: "gdr-supervisor-" });
  const open = () => createSupervisor({ directory, logger: silentLogger, clock: systemClock });
  const supervisor = open();
  return {
    directory,
    supervisor,
    open,
    async [Symbol.asyncDispose]() {
      await supervisor[Symbol.asyncDispose]();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

const shell = (name: string, script: string, more: Partial<ChildSpec> = {}): ChildSpec => ({
  name,
  command: ["sh", "-c", script],
  env,
  ...more,
});

const pidOf = async (supervisor: Supervisor, spec: ChildSpec) => {
  const { pid } = await supervisor.start(spec, call);
  assert.ok(pid !== null);
  return pid;
};

async function ref(pid: number) {
  const stat = await readStat(pid);
  assert.ok(stat !== undefined);
  return stat;
}

Deno.test("start() runs a child in a session of its own and waits until it is ready", async () => {
  await using world = await setup();
  const flag = `${world.directory}/flag`;
  const ready = async (signal: AbortSignal) => {
    while (await Deno.stat(flag).catch(() => undefined) === undefined) {
      await systemClock.sleep(5, signal);
    }
  };
  const pid = await pidOf(
    world.supervisor,
    shell("a", `sleep 0.1; echo x >${flag}; exec sleep 60`, { ready }),
  );
  assert.ok((await Deno.stat(flag)).isFile);
  assert.equal((await ref(pid)).session, pid);
});

Deno.test("start() runs a child only once its pid file is there, or nobody would find it after a kill", async () => {
  await using world = await setup();
  const { directory } = world;
  const script = `test -s ${directory}/a.pid && echo found; exec sleep 60`;
  const child = await world.supervisor.start(shell("a", script), call);
  await eventually(async () => (await child.lastLines()).includes("found"), { what: "its word" });
  // Its pid file cannot be written.
  await Deno.mkdir(`${directory}/b.pid.new`);
  const running = world.supervisor.start(shell("b", `echo x >${directory}/ran`), call);
  await assert.rejects(running, /b\.pid\.new/);
  await assert.rejects(Deno.stat(`${directory}/ran`), Deno.errors.NotFound);
});

Deno.test("start() rejects with the last lines when the child ends before it is ready", async () => {
  await using world = await setup();
  const ready = (signal: AbortSignal) => systemClock.sleep(60_000, signal);
  const spec = shell("a", "echo 'port is taken' >&2; exit 3", { ready });
  await assert.rejects(world.supervisor.start(spec, call), (error) => {
    assert.ok(error instanceof ChildError);
    assert.match(
      error.message,
      /^Start a: it ended with exit code 3; its last lines: port is taken$/,
    );
    return true;
  });
});

Deno.test("start() ends a child that is not ready in time", async () => {
  await using world = await setup();
  const ready = (signal: AbortSignal) => systemClock.sleep(60_000, signal);
  const spec = shell("a", `echo $$ >${world.directory}/pid; exec sleep 60`, {
    ready,
    readyMs: 200,
  });
  await assert.rejects(world.supervisor.start(spec, call), /not ready within 0\.2 s/);
  const pid = Number(await Deno.readTextFile(`${world.directory}/pid`));
  assert.equal(await readStat(pid), undefined);
});

Deno.test("a child that dies is started again, and one that is stopped is not", async () => {
  const world = await setup();
  const child = await world.supervisor.start(shell("a", "exec sleep 60"), call);
  const first = child.pid;
  assert.ok(first !== null);
  Deno.kill(first, "SIGKILL");
  const second = await eventually(
    () => child.pid !== null && child.pid !== first ? child.pid : undefined,
    {
      what: "the second start",
    },
  );
  assert.equal(child.restarts, 1);
  const process = await ref(second);
  await world[Symbol.asyncDispose]();
  assert.equal(await isAlive(process), false);
});

Deno.test("disposing stops children last first, with what they started", async () => {
  const world = await setup();
  const log = await Deno.makeTempFile();
  const script = (name: string) =>
    `trap 'echo ${name} >>${log}; exit 0' TERM; sleep 60 & echo $! >${world.directory}/${name}.grandchild; wait`;
  const ready = (name: string) => async (signal: AbortSignal) => {
    while (
      !(await Deno.readTextFile(`${world.directory}/${name}.grandchild`).catch(() => "")).includes(
        "\n",
      )
    ) {
      await systemClock.sleep(5, signal);
    }
  };
  for (const name of ["one", "two"]) {
    await world.supervisor.start(shell(name, script(name), { ready: ready(name) }), call);
  }
  const grandchildren = await Promise.all(
    ["one", "two"].map(async (name) =>
      await ref(Number(await Deno.readTextFile(`${world.directory}/${name}.grandchild`)))
    ),
  );
  await world[Symbol.asyncDispose]();
  assert.equal(await Deno.readTextFile(log), "two\none\n");
  for (const grandchild of grandchildren) assert.equal(await isAlive(grandchild), false);
  await Deno.remove(log);
});

Deno.test("disposing kills a child that does not listen, soon", async () => {
  const world = await setup();
  const pid = await pidOf(
    world.supervisor,
    shell("deaf", "trap '' TERM; while :; do sleep 0.1; done", { graceMs: 200 }),
  );
  const process = await ref(pid);
  const start = performance.now();
  await world[Symbol.asyncDispose]();
  assert.ok(performance.now() - start < 3000);
  assert.equal(await isAlive(process), false);
});

Deno.test("endLeftovers() ends what a killed run left, and touches nothing else", async () => {
  await using world = await setup();
  const leaver = new URL("./supervisor.ts", import.meta.url).href;
  const clock = new URL("../lib/clock.ts", import.meta.url).href;
  const logger = new URL("../lib/logger.ts", import.meta.url).href;
  // A controller that is killed as soon as its child runs.
  const script = `
    const { createSupervisor } = await import(${JSON.stringify(leaver)});
    const { systemClock } = await import(${JSON.stringify(clock)});
    const { silentLogger } = await import(${JSON.stringify(logger)});
    const supervisor = createSupervisor({
      directory: ${JSON.stringify(world.directory)}, logger: silentLogger, clock: systemClock,
    });
    const child = await supervisor.start(
      { name: "left", command: ["sleep", "60"], env: { PATH: "/usr/bin:/bin" } },
      { signal: new AbortController().signal },
    );
    console.log(child.pid);
    Deno.kill(Deno.pid, "SIGKILL");
  `;
  const output = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
  const left = await ref(Number(new TextDecoder().decode(output.stdout)));
  assert.equal(await isAlive(left), true);
  // A pid file whose pid belongs to somebody else now: another start time.
  const other = new Deno.Command("sleep", { args: ["60"] }).spawn();
  const { bootId } = JSON.parse(await Deno.readTextFile(`${world.directory}/left.pid`));
  const stale = { pid: other.pid, startTime: "1", bootId, exe: "sleep" };
  await Deno.writeTextFile(`${world.directory}/stale.pid`, JSON.stringify(stale));
  await world.open().endLeftovers();
  assert.equal(await isAlive(left), false);
  assert.equal(await isAlive(await ref(other.pid)), true);
  other.kill();
  await other.status;
  assert.deepEqual(
    [...Deno.readDirSync(world.directory)].filter(({ name }) => name.endsWith(".pid")),
    [],
  );
});
