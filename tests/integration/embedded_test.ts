import assert from "node:assert/strict";
import {
  type ControllerPlace,
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { HAPPY } from "../support/engine_events.ts";
import { eventually } from "../support/eventually.ts";
import { receiveTraces } from "../support/trace_receiver.ts";
import { flawsOf, traceOf, WHOLE_TRACE } from "../support/whole_trace.ts";

/** Sample jobs by name, with how they end. */
const RESULTS = [
  ["broken", "failure"],
  ["build-image", "success"],
  ["compile", "success"],
  ["publish", "success"],
  ["slow", "success"],
  ["test", "success"],
  ["test", "success"],
  ["test", "success"],
];

interface Assignment {
  readonly id: string;
  readonly job: string;
  readonly state: string;
  readonly result: string | null;
  readonly events: readonly { readonly event: string }[];
}

interface Executor {
  readonly name: string;
  readonly uid: string;
  readonly assignmentId: string;
  readonly recovered: { readonly proof: string } | null;
}

async function assignments(controller: ControllerProcess): Promise<Assignment[]> {
  return (await controller.get<{ items: Assignment[] }>("/api/v1/assignments?limit=100")).items;
}

async function executors(controller: ControllerProcess): Promise<Executor[]> {
  return (await controller.get<{ items: Executor[] }>("/api/v1/executors?limit=100")).items;
}

/** Waits for the job that takes eight seconds to run. */
function slowJob(controller: ControllerProcess): Promise<Assignment> {
  return eventually(async () => {
    return (await assignments(controller)).find((a) => a.job === "slow" && a.state === "running");
  }, { what: "the slow job to run", timeoutMs: 30_000, everyMs: 100 });
}

async function eventsOf(controller: ControllerProcess, id: string): Promise<string[]> {
  const { events } = await controller.get<Assignment>(`/api/v1/assignments/${id}`);
  return events.map(({ event }) => event);
}

async function assertNothingLeft(place: ControllerPlace): Promise<void> {
  await place.empty();
  if (Deno.uid() === 0) await assert.rejects(Deno.stat(place.runtimeDir), Deno.errors.NotFound);
}

/** Paths below a folder that others may read; V8 writes its cache as it likes, into a closed one. */
async function open(directory: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(directory)) {
    const path = `${directory}/${name}`;
    if (path.endsWith("/run/executor/cache")) continue;
    const { mode } = await Deno.lstat(path);
    if (((mode ?? 0) & 0o077) !== 0) found.push(path);
    else if (isDirectory) found.push(...await open(path));
  }
  return found;
}

Deno.test("main runs every sample job in an executor and with an identity of its own, though its NATS is killed", async () => {
  await using receiver = receiveTraces();
  await using place = await createControllerPlace();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  await using controller = await startController({ ...place, env });
  const pids = new Map<string, string>();
  const look = async () => {
    for (const { assignmentId, uid } of await executors(controller)) {
      pids.set(assignmentId, uid.split("-")[0] ?? "");
    }
  };
  const nats = await controller.logged("nats-server is up");
  await eventually(async () => {
    await look();
    return (await assignments(controller)).some((a) => a.job === "slow" && a.state === "running");
  }, { what: "the slow job to run", timeoutMs: 30_000, everyMs: 50 });

  Deno.kill(Number(nats["pid"]), "SIGKILL");

  const all = await eventually(async () => {
    await look();
    const all = await assignments(controller);
    return all.length === RESULTS.length && all.every((a) => a.state === "cleaned") && all;
  }, { what: "the sample jobs to be cleaned", timeoutMs: 60_000, everyMs: 100 });
  assert.deepEqual(all.map((a) => [a.job, a.result]).sort(), RESULTS);
  for (const { id } of all) assert.deepEqual(await eventsOf(controller, id), HAPPY, id);
  assert.equal(new Set(pids.values()).size, all.length, JSON.stringify([...pids]));
  const handed = (await controller.log()).filter(({ msg }) => msg === "task handed over");
  assert.equal(new Set(handed.map(({ serial }) => serial)).size, all.length);
  await controller.logged("child started again", { child: "nats-server" });
  assert.deepEqual(await open(place.stateDir), []);
  assert.equal(((await Deno.stat(place.stateDir)).mode ?? 0) & 0o777, 0o700);

  assert.equal(await controller.end("SIGTERM"), 0, await controller.text());
  await assertNothingLeft(place);
  for (const { id } of all) assert.deepEqual(flawsOf(traceOf(receiver, id), WHOLE_TRACE), []);
});

Deno.test("main finds the executors that outlived it, and lets their jobs end once", async () => {
  await using receiver = receiveTraces();
  await using place = await createControllerPlace();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  let slow: Assignment;
  let before: Executor | undefined;
  {
    await using killed = await startController({ ...place, env });
    slow = await slowJob(killed);
    before = (await executors(killed)).find((e) => e.assignmentId === slow.id);
    // History goes to its stream a moment after it happened.
    await eventually(
      async () =>
        (await killed.get<{ items: unknown[] }>("/api/v1/history?limit=200")).items.some((e) =>
          JSON.stringify(e).includes(`"running"`) && JSON.stringify(e).includes(`"${slow.id}"`)
        ),
      { what: "the history of the slow job" },
    );
  }
  assert.ok(before !== undefined);
  await using controller = await startController({ ...place, env });
  const after = await eventually(
    async () => (await executors(controller)).find((e) => e.assignmentId === slow.id),
    { what: "the slow job's executor", timeoutMs: 15_000 },
  );
  assert.equal(after.uid, before.uid);
  assert.equal(after.recovered?.proof, "record");
  const end = await eventually(
    async () =>
      (await assignments(controller)).find((a) => a.id === slow.id && a.state === "cleaned"),
    { what: "the slow job to end", timeoutMs: 20_000, everyMs: 100 },
  );
  assert.equal(end.result, "success");
  assert.deepEqual(await eventsOf(controller, slow.id), HAPPY);

  assert.equal(await controller.end("SIGINT"), 0, await controller.text());
  await assertNothingLeft(place);
  // What the killed one saw is in the trace, too, but for what is in no event.
  const unknown = ["store", "facade FetchTask"];
  const names = WHOLE_TRACE.filter((name) => !unknown.includes(name));
  assert.deepEqual(flawsOf(traceOf(receiver, slow.id), names), []);
});

Deno.test("main ends its executors on Ctrl-C and tells the forge that their jobs were cancelled", async () => {
  await using place = await createControllerPlace();
  await using controller = await startController(place);
  const slow = await slowJob(controller);
  const forge = await controller.logged("sample forge is up");
  assert.ok(slow.id !== "");

  assert.equal(await controller.end("SIGINT", { to: "group" }), 0, await controller.text());
  await assertNothingLeft(place);
  assert.equal(await resultAtForge(place, "slow"), "cancelled", String(forge["url"]));
});

Deno.test("main ends within 12 s of SIGTERM though forge, NATS and receiver of traces all hang", async () => {
  await using receiver = receiveTraces();
  const release = receiver.hold();
  await using place = await createControllerPlace();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  await using controller = await startController({ ...place, env });
  const names = ["nats-server is up", "sample forge is up"];
  const servers = await Promise.all(names.map((msg) => controller.logged(msg)));
  await slowJob(controller);
  // By now some jobs have ended, whose traces the receiver keeps waiting.
  await controller.logged("assignment transition", { event: "cleaned" });
  for (const { pid } of servers) Deno.kill(Number(pid), "SIGSTOP");
  try {
    assert.equal(await controller.end("SIGTERM"), 0, await controller.text());
    await controller.logged("spans are not delivered");
  } finally {
    for (const { pid } of servers) endServer(Number(pid));
    release();
  }
});

Deno.test("main ends on SIGTERM though esbuild, which builds its pages and programs, hangs", async () => {
  await using place = await createControllerPlace();
  await using controller = await startController(place);
  const esbuild = await childOf(controller, "--service=");
  Deno.kill(esbuild, "SIGSTOP");
  try {
    await controller.logged("nats-server is up");
    assert.equal(await controller.end("SIGTERM"), 0, await controller.text());
  } finally {
    Deno.kill(esbuild, "SIGCONT");
  }
  await assertNothingLeft(place);
});

Deno.test("main starts, with whole pages, though esbuild is killed while it builds them", async () => {
  await using place = await createControllerPlace();
  await using controller = await startController(place);
  Deno.kill(await childOf(controller, "--service="), "SIGKILL");
  await controller.logged("controller is up");
  assert.match(await (await fetch(await controller.url())).text(), /<link rel="stylesheet"/);
  assert.deepEqual((await controller.log()).filter(({ level }) => level === "ERROR"), []);
  assert.equal(await controller.end("SIGTERM"), 0, await controller.text());
  await assertNothingLeft(place);
});

/** The first child of the controller with these words in its command line; waits for it. */
function childOf({ pid }: ControllerProcess, words: string): Promise<number> {
  const children = `/proc/${pid}/task/${pid}/children`;
  return eventually(async () => {
    // Any of them may end while we look.
    for (const child of (await Deno.readTextFile(children)).trim().split(" ")) {
      const command = await Deno.readTextFile(`/proc/${child}/cmdline`).catch(() => "");
      if (command.includes(words)) return Number(child);
    }
    return undefined;
  }, { what: `a child with "${words}"`, everyMs: 2 });
}

/** Ends a server that was stopped, if it is still there. */
function endServer(pid: number): void {
  try {
    Deno.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound) && !(error instanceof TypeError)) throw error;
  }
}

/** What the forge has stored of a job. */
async function resultAtForge(place: ControllerPlace, job: string): Promise<unknown> {
  const folder = `${place.stateDir}/forge`;
  for await (const { name } of Deno.readDir(folder)) {
    if (!/^job-\d+\.json$/.test(name)) continue;
    const stored: Record<string, unknown> = JSON.parse(
      await Deno.readTextFile(`${folder}/${name}`),
    );
    if (stored["job"] === job) return stored["result"];
  }
  return undefined;
}
