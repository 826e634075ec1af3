import assert from "node:assert/strict";
import { untilAborted } from "../lib/abortable.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { type Fields, type Logger, silentLogger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import { createFakeForge } from "../tests/fakes/forge/fake_forge.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import { assignmentIdOf, parseTaskId, type TaskId } from "./model/ids.ts";
import { type AssignmentQueue, QueueError } from "./queue.ts";
import { noRecorder } from "./recorder.ts";
import { checkRegistration, createScheduler, type SchedulerOptions } from "./scheduler.ts";
import type { Placement } from "./store_task.ts";

type Publish = AssignmentQueue["publish"];

interface Setup extends Partial<SchedulerOptions> {
  readonly publish?: Publish;
  readonly place?: (task: Task) => Promise<Placement>;
  readonly settle?: (taskId: TaskId, detail: string) => Promise<void>;
  readonly flagsReady?: Promise<void>;
  readonly gitea?: (real: Gitea) => Gitea;
}

function setup(given: Setup = {}) {
  const clock = createFakeClock();
  const fake = createFakeForge({ clock });
  const runner = fake.addRunner([]);
  const stop = new AbortController();
  const stored: TaskId[] = [];
  const settled: { readonly taskId: TaskId; readonly detail: string }[] = [];
  const errors: Fields[] = [];
  let labels: readonly string[] = ["self-hosted", "pod"];
  let changed = Promise.withResolvers<void>();
  const direct = fake.direct(runner);
  const logger: Logger = { ...silentLogger, error: (_, fields) => void errors.push(fields ?? {}) };
  const ok: Publish = (message) =>
    Promise.resolve({ sequence: sequenceOf(message), duplicate: false });
  const scheduler = createScheduler({
    gitea: given.gitea?.(direct) ?? direct,
    queue: { maxPayload: 1000, publish: given.publish ?? ok },
    place: given.place ?? ((task) => Promise.resolve(placed(task))),
    settlePermanent: ({ taskId, detail }) => {
      settled.push({ taskId, detail });
      return given.settle?.(taskId, detail) ?? Promise.resolve();
    },
    onStored: (info) => void stored.push(info.taskId),
    labels: () => labels,
    labelsChanged: (signal) => Promise.race([changed.promise, untilAborted(signal)]),
    flagsReady: () => given.flagsReady ?? Promise.resolve(),
    recorder: noRecorder,
    logger,
    clock,
    random: () => 0.5,
  }, { capacity: 4, version: "1.2.3", capabilities: [], fetchMaxRps: 2, ...given });
  const running = scheduler.run(stop.signal);
  return {
    clock,
    fake,
    stored,
    settled,
    errors,
    scheduler,
    setLabels(next: readonly string[]) {
      labels = next;
      changed.resolve();
      changed = Promise.withResolvers();
    },
    /** Rounds of continuations without time passing. */
    async settle(rounds = 20) {
      for (let i = 0; i < rounds; i++) await clock.advance(0);
    },
    seconds: (count: number) => clock.advance(count * 1000),
    stop: () => stop.abort(new DOMException("Stopped", "AbortError")),
    running,
    async [Symbol.asyncDispose]() {
      stop.abort(new DOMException("Stopped", "AbortError"));
      await clock.advance(11_000);
      await running;
      assert.equal(clock.pending, 0, "a timer was left behind");
    },
  };
}

function taskIdOf(task: Task): TaskId {
  const id = parseTaskId(task.id);
  assert(id !== undefined);
  return id;
}

function placed(task: Task): Placement {
  const taskId = taskIdOf(task);
  return {
    kind: "assignment",
    envelope: new Uint8Array(10),
    headers: {},
    info: {
      id: assignmentIdOf(taskId),
      taskId,
      backend: "pod",
      identity: { spiffeId: "spiffe://example.org/ci/a/b/c", fork: false },
      repository: "a/b",
      job: "c",
      runId: null,
      giteaUrl: null,
      serverUrl: null,
    },
  };
}

const sequenceOf = (message: { readonly id: string }) => Number(message.id.replace(/\D/g, ""));

Deno.test("run() declares labels and version before its first fetch, after the flags were read", async () => {
  const flags = Promise.withResolvers<void>();
  const calls: string[] = [];
  await using s = setup({
    flagsReady: flags.promise,
    gitea: (real) => ({
      ...real,
      declare: async (runner, call) => {
        calls.push(`declare ${runner.version} ${runner.labels}`);
        const answer = await real.declare(runner, call);
        calls.push("declared");
        return answer;
      },
      fetchTask: (version, call) => {
        calls.push("fetch");
        return real.fetchTask(version, call);
      },
    }),
  });
  await s.seconds(5);
  assert.deepEqual(calls, []);
  flags.resolve();
  await s.settle();
  assert.deepEqual(calls.slice(0, 3), [
    "declare gitea-dynamic-runner/1.2.3 self-hosted,pod",
    "declared",
    "fetch",
  ]);
});

Deno.test("run() takes a burst at full width without waiting when many jobs are queued at once", async () => {
  await using s = setup({ capacity: 60 });
  await s.seconds(3);
  s.fake.queue(100);
  await s.clock.advance(500);
  await s.settle();
  assert.equal(s.stored.length, 100);
  assert.equal(new Set(s.stored).size, 100);
});

Deno.test("run() fetches on when the version of Gitea never moves", async () => {
  await using s = setup();
  s.fake.faults.versionFrozen = true;
  await s.seconds(2);
  s.fake.queue(3);
  await s.seconds(11);
  assert.equal(s.stored.length, 3);
});

Deno.test("run() sends the known version while idle and 0 once in ten seconds", async () => {
  await using s = setup();
  await s.seconds(1);
  s.fake.fetches.length = 0;
  await s.seconds(60);
  const forced = s.fake.fetches.filter(({ version }) => version === 0n).length;
  assert(forced >= 5 && forced <= 7, `${forced} forced`);
  assert.equal(s.fake.fetches.length, 120);
});

Deno.test("run() begins with a question or two, not with one of each of its many fetchers", async () => {
  await using s = setup({ capacity: 1_000 });
  await s.settle();
  const first = s.fake.fetches.length;
  assert.ok(first >= 1 && first <= 2, `${first} questions`);
  s.fake.queue(50);
  await s.seconds(11);
  assert.equal(s.stored.length, 50);
});

Deno.test("run() asks Gitea equally often while idle whatever the capacity", async () => {
  const counts: number[] = [];
  for (const capacity of [0, 1, 50]) {
    await using s = setup({ capacity });
    await s.seconds(2);
    s.fake.fetches.length = 0;
    await s.seconds(60);
    counts.push(s.fake.fetches.length);
    const gaps = s.fake.fetches.slice(1).map(({ at }, i) => at - (s.fake.fetches[i]?.at ?? 0));
    assert(gaps.every((gap) => gap === 500), "idle polls are not spread evenly");
  }
  assert.deepEqual(counts, [120, 120, 120]);
});

Deno.test("run() does not take an echoed 0 for an empty answer when Gitea throttles", async () => {
  await using s = setup({ capacity: 2 });
  await s.seconds(2);
  s.fake.faults.throttled = 4;
  s.fake.queue(6);
  // The first throttled answer comes to an idle poll, the others to questions with 0.
  await s.seconds(3);
  assert.equal(s.stored.length, 6);
});

Deno.test("run() stores everything and keeps the others fetching when every second call fails", async () => {
  await using s = setup({ capacity: 4 });
  await s.seconds(1);
  s.fake.faults.internalEverySecond = true;
  s.fake.queue(20);
  await s.seconds(60);
  assert.equal(s.stored.length, 20);
  assert.match(s.scheduler.status().lastError ?? "", /database is locked/);
});

Deno.test("run() lets one fetcher's trouble with the queue slow no other", async () => {
  let first: string | undefined;
  let tries = 0;
  await using s = setup({
    capacity: 2,
    publish: (message) => {
      first ??= message.id;
      if (message.id !== first) {
        return Promise.resolve({ sequence: sequenceOf(message), duplicate: false });
      }
      return ++tries < 8
        ? Promise.reject(new QueueError("unavailable", "Publish: no server"))
        : Promise.resolve({ sequence: 1, duplicate: true });
    },
  });
  s.fake.queue(5);
  await s.settle(40);
  assert.equal(s.stored.length, 4);
  await s.seconds(30);
  assert.equal(s.stored.length, 5);
  assert.equal(tries, 8);
});

Deno.test("run() holds at most one task per fetcher while nothing can be stored", async () => {
  await using s = setup({
    capacity: 3,
    publish: () => Promise.reject(new QueueError("unavailable", "Publish: no server")),
  });
  s.fake.queue(10);
  await s.seconds(20);
  assert.equal(s.fake.forge.jobs().filter((job) => job.taskId > 0).length, 3);
});

Deno.test("run() stores a task whose fetch was in flight at the stop", async () => {
  const gate = Promise.withResolvers<void>();
  let held = 0;
  await using s = setup({
    capacity: 1,
    gitea: (real) => ({
      ...real,
      fetchTask: async (version, call) => {
        const answer = await real.fetchTask(version, call);
        if (answer.task !== undefined) {
          held += 1;
          await gate.promise;
          call.signal.throwIfAborted();
        }
        return answer;
      },
    }),
  });
  s.fake.queue(2);
  await s.settle();
  assert.equal(held, 1);
  s.stop();
  await s.seconds(5);
  assert.deepEqual(s.stored, []);
  gate.resolve();
  await s.settle();
  await s.running;
  assert.equal(s.stored.length, 1);
  assert.equal(held, 1, "fetched again after the stop");
});

Deno.test("run() ends ten seconds after the stop and says which task is not stored when the queue stays away", async () => {
  await using s = setup({
    capacity: 1,
    publish: () => Promise.reject(new QueueError("unavailable", "Publish: no server")),
  });
  s.fake.queue(1);
  await s.seconds(1);
  s.stop();
  let ended = false;
  s.running.then(() => ended = true);
  await s.seconds(9);
  assert.equal(ended, false);
  await s.seconds(2);
  assert.equal(ended, true);
  assert(s.errors.some((fields) => fields.stored === false && fields.taskId === "1"));
});

Deno.test("run() fails a task at Gitea with both sizes when it is too large to store", async () => {
  await using s = setup({
    place: (task) =>
      Promise.resolve({ ...placed(task), envelope: new Uint8Array(4321) } as Placement),
    publish: () => Promise.reject(new QueueError("too_large", "Publish: too large")),
  });
  s.fake.queue(1);
  await s.seconds(1);
  assert.equal(s.settled.length, 1);
  assert.match(s.settled[0]?.detail ?? "", /4321 bytes.*1000 bytes/);
});

Deno.test("run() tells Gitea of a task that can never run until Gitea has taken it", async () => {
  let tries = 0;
  await using s = setup({
    capacity: 1,
    place: (task) =>
      Promise.resolve({ kind: "permanent", taskId: taskIdOf(task), detail: "labels" }),
    settle: () =>
      ++tries < 3 ? Promise.reject(new GiteaError("unavailable", "no answer")) : Promise.resolve(),
  });
  s.fake.queue(2);
  await s.seconds(10);
  assert.equal(tries, 4);
  assert.deepEqual(s.settled.map(({ taskId }) => taskId), ["1", "1", "1", "2"]);
});

Deno.test("run() goes on when Gitea does not know a task that it should fail", async () => {
  await using s = setup({
    capacity: 1,
    place: (task) =>
      Promise.resolve({ kind: "permanent", taskId: taskIdOf(task), detail: "labels" }),
    settle: () => Promise.reject(new GiteaError("not_found", "gone")),
  });
  s.fake.queue(2);
  await s.seconds(2);
  assert.equal(s.settled.length, 2);
});

Deno.test("run() declares again only when the set of labels differs, and fetches at once when one is given back", async () => {
  await using s = setup();
  await s.seconds(12);
  s.setLabels(["self-hosted"]);
  await s.settle();
  s.setLabels(["self-hosted"]);
  await s.settle();
  assert.deepEqual(s.fake.declares, [["self-hosted", "pod"], ["self-hosted"]]);
  s.fake.queue(1);
  await s.seconds(1);
  assert.equal(s.stored.length, 0);
  s.setLabels(["self-hosted", "pod"]);
  await s.settle();
  assert.equal(s.fake.declares.length, 3);
  assert.equal(s.stored.length, 1);
});

Deno.test("run() declares what holds now when the labels change while Gitea is away", async () => {
  await using s = setup();
  await s.seconds(1);
  s.fake.faults.down = true;
  s.setLabels([]);
  await s.seconds(7);
  s.setLabels(["self-hosted", "vm"]);
  await s.seconds(7);
  s.fake.faults.down = false;
  await s.seconds(7);
  assert.deepEqual(s.fake.declares.slice(1), [["self-hosted", "vm"]]);
});

Deno.test("nudge() fetches at once with version 0 when idle", async () => {
  await using s = setup({ fetchMaxRps: 0.01 });
  await s.seconds(12);
  s.fake.queue(3);
  await s.settle();
  assert.equal(s.stored.length, 0);
  s.scheduler.nudge();
  await s.settle();
  assert.equal(s.stored.length, 3);
});

Deno.test("status() follows Gitea down and up again, and names the reason", async () => {
  await using s = setup();
  await s.seconds(2);
  assert.equal(s.scheduler.status().state, "up");
  s.fake.faults.unauthenticated = true;
  await s.seconds(2);
  assert.equal(s.scheduler.status().state, "degraded");
  await s.seconds(10);
  const down = s.scheduler.status();
  assert.equal(down.state, "down");
  assert.match(down.lastError ?? "", /unregistered runner/);
  s.fake.faults.unauthenticated = false;
  s.fake.queue(1);
  await s.seconds(10);
  assert.equal(s.scheduler.status().state, "up");
  assert.equal(s.stored.length, 1);
});

Deno.test("run() asks a silent Gitea no more often than an idle one", async () => {
  await using s = setup({ capacity: 50 });
  await s.seconds(1);
  s.fake.faults.unauthenticated = true;
  s.scheduler.nudge();
  await s.seconds(10);
  s.fake.fetches.length = 0;
  await s.seconds(60);
  assert(s.fake.fetches.length <= 121, `${s.fake.fetches.length} fetches in a minute`);
  const repeated = s.errors.length;
  assert(repeated <= 5, `${repeated} log records for one fault`);
});

Deno.test("checkRegistration() throws at once when the registration is wrong", async () => {
  const fake = createFakeForge();
  const wrong = { ...fake.addRunner(), uuid: "nobody" };
  const deps = { gitea: fake.direct(wrong), clock: createFakeClock(), random: () => 0.5 };
  await assert.rejects(
    checkRegistration({ ...deps, logger: silentLogger }, new AbortController().signal),
    (error) => error instanceof GiteaError && error.code === "unauthenticated",
  );
});

Deno.test("checkRegistration() waits for a Gitea that is not there yet", async () => {
  const fake = createFakeForge();
  const clock = createFakeClock();
  const errors: unknown[] = [];
  const logger: Logger = { ...silentLogger, error: (message) => void errors.push(message) };
  fake.faults.down = true;
  const deps = { gitea: fake.direct(fake.addRunner()), clock, random: () => 0.5, logger };
  let done = false;
  const check = checkRegistration(deps, new AbortController().signal).then(() => done = true);
  await clock.advance(8_000);
  assert.equal(done, false);
  assert.deepEqual(errors, ["scheduler error"]);
  fake.faults.down = false;
  await clock.advance(6_000);
  await check;
});
