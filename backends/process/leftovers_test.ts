import assert from "node:assert/strict";
import { type Backend, BackendError } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { systemClock } from "../../lib/clock.ts";
import { type Fields, type Logger, silentLogger } from "../../lib/logger.ts";
import { specOf } from "../../tests/contract/backend_suite.ts";
import { createFakeProcessIdentity } from "../../tests/fakes/process_identity.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { claimFolder, type Creator } from "./folder.ts";
import { hiddenName } from "./hidden.ts";
import { createSweeper } from "./leftovers.ts";
import type { Making } from "./making.ts";
import { bootId, self, startedWith } from "./proc.ts";
import { createProcessBackend, type ProcessBackendOptions } from "./process_backend.ts";

const call = { signal: new AbortController().signal };
const spec = specOf("1", "pod");
/** Sweeps are a second apart: long before this everything is gone. */
const SWEPT = { what: "the sweep", timeoutMs: 8000 };

async function setup() {
  const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "gdr-leftovers-" });
  const identity = createFakeProcessIdentity();
  const stop = new AbortController();
  const watches: Promise<void>[] = [];
  const backend = (options: Partial<ProcessBackendOptions> = {}) =>
    createProcessBackend({
      name: "pod",
      directory,
      command: ["true"],
      environment: {},
      identity,
      userIds: null,
      clock: systemClock,
      logger: silentLogger,
      graceMs: 0,
      pollMs: 20,
      ...options,
    });
  const living: Creator = {
    backend: "pod",
    instance: "other",
    process: await self(),
    bootId: await bootId(),
  };
  const making = (options: Partial<Making> = {}): Making => ({
    backend: "pod",
    root: directory,
    command: ["true"],
    environment: {},
    identity,
    userIds: null,
    graceMs: 0,
    creator: { ...living, instance: "ours" },
    clock: createFakeClock(),
    logger: silentLogger,
    randomId: () => crypto.randomUUID().replaceAll("-", ""),
    underway: new Set(),
    sweeping: new Map(),
    onChanged: () => {},
    ...options,
  });
  return {
    directory,
    identity,
    backend,
    living,
    making,
    /** What is there, hidden folders too. */
    names: () => [...Deno.readDirSync(directory)].map(({ name }) => name).sort(),
    /** What the leader's controller does all the time. */
    watch(watched: Backend) {
      watches.push((async () => {
        for await (const _ of watched.watch({ signal: stop.signal }));
      })());
    },
    /** As a create leaves it that was killed right after it had claimed the name. */
    async halfMade(creator: Creator): Promise<void> {
      assert.ok(await claimFolder(directory, { name: spec.name, creator, id: "1" }) !== undefined);
      await identity.endpoint(spec.name, null, call);
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(watches);
      await Deno.remove(directory, { recursive: true });
    },
  };
}

const dead = (creator: Creator): Creator => ({
  ...creator,
  // The pid is in use again, by ourselves.
  process: { ...creator.process, startTime: "1" },
});

/** Where a create is killed: the name is claimed in all cases, and there is no meta.json. */
const KILL_POINTS = {
  "before its identity": `identity.before = () => die();`,
  "after its identity": `const { endpoint } = identity;
    identity.endpoint = async (...all) => { await endpoint(...all); die(); };`,
  // The ids are those of the object, of the claim and, last of all before meta.json, of the executor.
  "between the wrapper and meta.json": `randomId = () => ++ids === 3 ? die() : "id" + ids;`,
};

for (const [when, how] of Object.entries(KILL_POINTS)) {
  Deno.test(`watch() removes what a create left that was killed ${when}`, async () => {
    await using world = await setup();
    const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
    const script = `
      const { createProcessBackend } = await import(${url("./process_backend.ts")});
      const { systemClock } = await import(${url("../../lib/clock.ts")});
      const { silentLogger } = await import(${url("../../lib/logger.ts")});
      const fakes = await import(${url("../../tests/fakes/process_identity.ts")});
      const identity = fakes.createFakeProcessIdentity();
      const die = () => Deno.kill(Deno.pid, "SIGKILL");
      let ids = 0, randomId = () => "id" + ++ids;
      ${how}
      const backend = createProcessBackend({
        name: "pod", directory: ${JSON.stringify(world.directory)}, environment: {}, userIds: null,
        command: ["sleep", "60"], identity, clock: systemClock, logger: silentLogger, randomId,
      });
      await backend.create(${JSON.stringify(spec)}, { signal: new AbortController().signal });
    `;
    const killed = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
    assert.equal(killed.signal, "SIGKILL", new TextDecoder().decode(killed.stderr));
    assert.deepEqual(world.names(), [spec.name]);
    await world.identity.endpoint(spec.name, null, call);
    await using next = world.backend();
    // Its assignment has ended: no create of that name will ever come.
    assert.equal(await next.find(spec.name, call), undefined);
    assert.deepEqual(await next.list(call), []);
    world.watch(next);
    await eventually(() => world.names().length === 0, SWEPT);
    assert.equal(world.identity.endpoints.has(spec.name), false);
  });
}

Deno.test("watch() removes what an aborted create could not undo, of the same object", async () => {
  await using world = await setup();
  await using backend = world.backend();
  const abort = new AbortController();
  let refuses = true;
  world.identity.before = (method) => {
    if (method === "endpoint") abort.abort(new Error("cancelled"));
    if (method === "unbind" && refuses) return Promise.reject(new Error("not now"));
    return Promise.resolve();
  };
  await assert.rejects(backend.create(spec, { signal: abort.signal }), /cancelled/);
  assert.deepEqual(world.names(), [spec.name]);
  refuses = false;
  world.watch(backend);
  await eventually(() => world.names().length === 0, SWEPT);
  assert.equal(world.identity.endpoints.has(spec.name), false);
});

Deno.test("create() takes over at once what an aborted create could not undo", async () => {
  await using world = await setup();
  await using backend = world.backend();
  const abort = new AbortController();
  world.identity.before = (method) => {
    if (method === "endpoint") abort.abort(new Error("cancelled"));
    return method === "unbind" ? Promise.reject(new Error("not now")) : Promise.resolve();
  };
  await assert.rejects(backend.create(spec, { signal: abort.signal }), /cancelled/);
  world.identity.before = null;
  const made = await backend.create(spec, call);
  await backend.delete(made, call);
  assert.deepEqual(world.names(), []);
});

Deno.test("sweep() leaves what a living creator is making, and finds it when that has ended", async () => {
  await using world = await setup();
  await world.halfMade(world.living);
  const making = world.making();
  await createSweeper().sweep(making, call.signal);
  assert.deepEqual(world.names(), [spec.name]);
  await Deno.writeTextFile(
    `${world.directory}/${spec.name}/creator`,
    JSON.stringify(dead(world.living)),
  );
  await createSweeper().sweep(making, call.signal);
  assert.deepEqual(world.names(), []);
  assert.equal(world.identity.endpoints.size, 0);
});

Deno.test("sweep() removes what an earlier boot left, and not what another backend does", async () => {
  await using world = await setup();
  await world.halfMade({ ...world.living, bootId: "an earlier one", backend: "vm" });
  await createSweeper().sweep(world.making(), call.signal);
  assert.deepEqual(world.names(), [spec.name]);
  await createSweeper().sweep(world.making({ backend: "vm" }), call.signal);
  assert.deepEqual(world.names(), []);
});

Deno.test("sweep() leaves what this object is making, draft and folder", async () => {
  await using world = await setup();
  const { creator } = world.making();
  await world.halfMade(creator);
  const draft = hiddenName("new", creator, "2");
  await Deno.mkdir(`${world.directory}/${draft}`);
  const underway = new Set<string>([spec.name, draft]);
  await createSweeper().sweep(world.making({ underway }), call.signal);
  assert.deepEqual(world.names(), [draft, spec.name]);
  assert.deepEqual([...underway], [spec.name, draft]);
  await createSweeper().sweep(world.making(), call.signal);
  assert.deepEqual(world.names(), []);
});

Deno.test("sweep() knows by the name alone whose a draft or a grave is", async () => {
  await using world = await setup();
  const kept = (["gone", "new"] as const).map((kind) => hiddenName(kind, world.living, "1"));
  const left = (["gone", "new"] as const).map((kind) => hiddenName(kind, dead(world.living), "2"));
  for (const name of [...kept, ...left]) await Deno.mkdir(`${world.directory}/${name}`);
  await createSweeper().sweep(world.making(), call.signal);
  assert.deepEqual(world.names(), kept);
});

Deno.test("sweep() ends what runs in a half-made executor", async () => {
  await using world = await setup();
  await world.halfMade(dead(world.living));
  const mark = `HOME=${await Deno.realPath(world.directory)}/${spec.name}/home`;
  const child = new Deno.Command("sleep", {
    args: ["60"],
    env: { HOME: mark.slice("HOME=".length) },
  }).spawn();
  await eventually(() => startedWith(child.pid, [mark]), { what: "the program" });
  await createSweeper().sweep(world.making({ clock: systemClock }), call.signal);
  assert.notEqual((await child.status).signal, null);
  assert.deepEqual(world.names(), []);
});

Deno.test("create() waits for the sweep of its name and gets it", async () => {
  await using world = await setup();
  await world.halfMade(dead(world.living));
  await using backend = world.backend();
  const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  world.identity.before = async (method) => {
    if (method !== "unbind") return;
    reached.resolve();
    await go.promise;
  };
  world.watch(backend);
  await reached.promise;
  const made = backend.create(spec, call);
  const abort = new AbortController();
  const refused = backend.create(spec, { signal: abort.signal });
  abort.abort(new Error("cancelled"));
  await assert.rejects(refused, /cancelled/);
  assert.equal(await backend.find(spec.name, call), undefined);
  go.resolve();
  const { name, uid } = await made;
  assert.equal(name, spec.name);
  assert.equal(world.identity.endpoints.has(spec.name), true);
  await backend.delete({ name, uid }, call);
});

Deno.test("sweep() that fails says so, keeps the folder and comes again after ten seconds", async () => {
  await using world = await setup();
  await world.halfMade(dead(world.living));
  const clock = createFakeClock();
  const warnings: Fields[] = [];
  const logger: Logger = { ...silentLogger, warn: (_, fields = {}) => void warnings.push(fields) };
  const making = world.making({ clock, logger });
  const sweeper = createSweeper();
  const refusal = new BackendError("unavailable", "not now");
  world.identity.before = () => Promise.reject(refusal);
  await sweeper.sweep(making, call.signal);
  assert.deepEqual(warnings, [{ error: refusal }]);
  assert.deepEqual([world.names(), making.underway.size], [[spec.name], 0]);
  world.identity.before = null;
  await clock.advance(9_999);
  await sweeper.sweep(making, call.signal);
  assert.deepEqual(world.names(), [spec.name]);
  await clock.advance(1);
  await sweeper.sweep(making, call.signal);
  assert.deepEqual([world.names(), warnings.length], [[], 1]);
});
