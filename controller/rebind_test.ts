import assert from "node:assert/strict";
import { type Logger, silentLogger } from "../lib/logger.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { createFakeBackend } from "../tests/fakes/backend.ts";
import { specOf } from "../tests/contract/backend_suite.ts";
import { createEntry, takeTurn } from "./entry.ts";
import type { State } from "./model/state.ts";
import { createRebind } from "./rebind.ts";

const call = { signal: new AbortController().signal };

async function setup(kind: "ready" | "claimed" | "running" | "starting" = "running") {
  const errors: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    error: (message) => void errors.push(message),
    child: () => logger,
  };
  const spec = specOf("1", "pod");
  const backend = createFakeBackend();
  const executor = await backend.create(spec, call);
  const state: State = kind === "claimed"
    ? { kind, executor: spec.name, presence: "alive", ack: "waiting", final: null }
    : kind === "running"
    ? { kind, executor: spec.name, presence: "alive" }
    : { kind, executor: spec.name };
  const entry = createEntry(spec.assignment, state, 0, 0);
  entry.executor = executor;
  const tasks = createTaskGroup(silentLogger);
  const world = { acts: true };
  const rebind = createRebind({
    logger,
    tasks,
    backend,
    guard() {
      if (!world.acts) throw new Error("This controller must not act any more");
    },
  });
  const settled = async () => {
    (await takeTurn(entry))();
    while (tasks.size > 0) await Promise.resolve();
  };
  const tries = () => backend.calls.filter(({ method }) => method === "bindIdentity").length;
  return { world, backend, entry, executor, tasks, errors, tries, settled, rebind };
}

for (const kind of ["ready", "claimed", "running"] as const) {
  Deno.test(`rebind() binds the identity of a ${kind} one, once at a time`, async () => {
    const { backend, entry, tasks, tries, settled, rebind } = await setup(kind);
    await using _tasks = tasks;
    rebind(entry);
    rebind(entry);
    await settled();
    assert.deepEqual([...backend.bound.values()], [entry.info.identity.spiffeId]);
    assert.equal(tries(), 1);
  });
}

Deno.test("rebind() leaves one alone that was never bound, has ended or is being deleted", async () => {
  const starting = await setup("starting");
  await using _starting = starting.tasks;
  starting.rebind(starting.entry);
  await starting.settled();
  assert.equal(starting.tries(), 0);

  const over = await setup();
  await using _over = over.tasks;
  const ended = { code: "executor_failed", detail: "", exitCode: 1, lastLines: [] } as const;
  for (const part of [{ terminating: true }, { ended }]) {
    over.entry.executor = { ...over.executor, ...part };
    over.rebind(over.entry);
    await over.settled();
  }
  over.entry.executor = null;
  over.rebind(over.entry);
  await over.settled();
  assert.equal(over.tries(), 0);
});

Deno.test("rebind() waits for its turn and looks again whether it is still wanted", async () => {
  const { entry, tasks, tries, settled, rebind } = await setup();
  await using _tasks = tasks;
  const release = await takeTurn(entry);
  rebind(entry);
  entry.state = { kind: "cleaned", result: "success" };
  release();
  await settled();
  assert.equal(tries(), 0);
});

Deno.test("rebind() logs what fails, gives its turn back, and tries when it is called again", async () => {
  const { world, backend, entry, tasks, errors, tries, settled, rebind } = await setup();
  await using _tasks = tasks;
  backend.faults.failing.set("bindIdentity", "unavailable");
  rebind(entry);
  await settled();
  backend.faults.failing.clear();
  world.acts = false;
  rebind(entry);
  await settled();
  assert.equal(errors.length, 2);
  assert.equal(backend.bound.size, 0);
  world.acts = true;
  rebind(entry);
  await settled();
  assert.equal(tries(), 2);
  assert.equal(backend.bound.size, 1);
});
