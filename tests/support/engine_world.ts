import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { createEngine } from "../../controller/create_engine.ts";
import type { WaitingReason } from "../../controller/admission.ts";
import type { Engine, EngineOptions } from "../../controller/engine.ts";
import type { JournalEntry } from "../../controller/journal.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import { createEnvelopeCodec } from "../../controller/model/envelope.ts";
import {
  type AssignmentId,
  assignmentIdOf,
  type BackendName,
  type ExecutorName,
  executorName,
  instanceOf,
  parseTaskId,
} from "../../controller/model/ids.ts";
import { stepsOf } from "../../controller/model/steps.ts";
import { createPhaseStatistics } from "../../controller/views/phases.ts";
import { noRecorder } from "../../controller/recorder.ts";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";
import { type Fields, type Logger, silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createTaskGroup } from "../../lib/task_group.ts";
import { Result, type Task } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createOwnership } from "../../wiring/ownership.ts";
import { createPlace } from "../../wiring/place.ts";
import { UNTOLD_ENDS } from "../../backends/vm/vm_backend.ts";
import { createFakeBackend, type FakeBackend } from "../fakes/backend.ts";
import { createPodOnCluster } from "../fakes/pod_on_cluster.ts";
import { add, createFakeGitea, type FakeGitea } from "../fakes/gitea_port.ts";
import { createFakeQueue, type FakeQueue } from "../fakes/queue.ts";
import { createFakeStore, type FakeStore } from "../fakes/records.ts";
import { createFakeFacade, type FakeFacade, NO_FACADE } from "./fake_facade.ts";
import { type Plan, runProgram } from "./fake_executor.ts";
import { mortal } from "./mortal.ts";
import { sampleTask } from "./tasks.ts";

const TRUST_DOMAIN = "test.example";
const KEYS = [new Secret("k".repeat(32))];
const PREFIX = "ci.test.example";

/** Pods are the Pod backend's, on a cluster in memory. */
export const PODS_ON_CLUSTER = Deno.env.get("TEST_POD_BACKEND") === "cluster";

/** One controller process on the world's servers. */
export interface Controller {
  readonly engine: Engine;
  readonly facade: FakeFacade;
  /** Why it must not act any more; null while it may. */
  readonly fenced: string | null;
  readonly dead: boolean;
  /** The process is gone at this very moment: nothing that it calls is done any more. */
  kill(): void;
  /** The same after so many more calls to its servers. */
  killAfter(calls: number): void;
  /** Stops consuming; then `engine.endExecutors` may be called. */
  stop(): Promise<void>;
}

/** Settings of a world. */
export interface WorldOptions {
  readonly capacity?: number;
  readonly engine?: Partial<EngineOptions>;
  readonly backends?: readonly BackendName[];
}

/**
 * Servers and executors in memory that outlive the controllers that are started on them: Gitea,
 * queue, records, backends, and the programs inside the executors.
 */
export interface World extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly gitea: FakeGitea;
  readonly queue: FakeQueue;
  readonly store: FakeStore;
  readonly pod: FakeBackend;
  readonly vm: FakeBackend;
  /** Of all controllers, in order. */
  readonly journal: readonly JournalEntry[];
  /** Errors that were logged. */
  readonly errors: readonly Fields[];
  /** How the program of a task's nth executor (from 1) behaves. */
  plan: (task: string, attempt: number) => Partial<Plan>;
  /** Gates that were handed a task, and how many programs began to run it. */
  readonly handed: ReadonlyMap<string, ReadonlySet<string>>;
  readonly runs: ReadonlyMap<string, number>;
  /** Why no executor could reach the facade now. */
  cutOff: WaitingReason | null;
  /** Called with each journal entry, at that very moment. */
  onJournal: (entry: JournalEntry) => void;
  /** Starts a controller; the one before must be dead, unless the test wants two. */
  start(over?: Partial<EngineOptions>): Promise<Controller>;
  /** The task is handed out by Gitea and stored. */
  submit(task: number, more?: { readonly backend?: BackendName }): Promise<AssignmentInfo>;
  /** Stores a message as it is. */
  publish(task: number, data: Uint8Array): Promise<void>;
  /** What {@link World.submit} stores. */
  seal(task: Task): Promise<{ readonly info: AssignmentInfo; readonly data: Uint8Array }>;
  /** Moves time on until `probe` holds; throws after `limitMs` of the world's time. */
  until(what: string, probe: () => boolean, limitMs?: number): Promise<void>;
  /** Until the assignment is cleaned, by whichever controller is the last. */
  cleaned(task: number, limitMs?: number): Promise<void>;
  /** Nothing is left: no executor, no message, no record, all slots free, every task ended. */
  assertClean(): void;
  /** Called when the world ends, before its controllers do. */
  onEnd(end: () => PromiseLike<void>): void;
  /** Events of one assignment in order. */
  events(task: number): string[];
  id(task: number): AssignmentId;
  executor(task: number): ExecutorName;
}

/**
 * Makes a {@link World}; dispose it to end every controller and every program. With
 * `TEST_POD_BACKEND=cluster` its Pods are the Pod backend's, on a cluster in memory.
 */
export async function createWorld(options: WorldOptions = {}): Promise<World> {
  // Everything is in memory: turns of the event loop need no real time.
  const clock = createFakeClock(undefined, () => new Promise((resolve) => setImmediate(resolve)));
  const gitea = createFakeGitea();
  const queue = createFakeQueue({ clock });
  const store = createFakeStore();
  const vm = createFakeBackend({ name: "vm", clock, untoldEnds: UNTOLD_ENDS });
  const names = options.backends ?? ["pod"];
  const instance = await instanceOf("uuid", "namespace");
  const pod = PODS_ON_CLUSTER
    ? createPodOnCluster({ clock, instance, prefix: PREFIX })
    : createFakeBackend({ name: "pod", clock });
  const ownership = createOwnership({
    keys: KEYS,
    prefix: PREFIX,
    instance,
    trustDomain: TRUST_DOMAIN,
  });
  const place = { trustDomain: TRUST_DOMAIN, defaultBackend: null };
  const codec = createEnvelopeCodec(KEYS, place);
  const placing = createPlace(codec, place);
  const journal: JournalEntry[] = [];
  const errors: Fields[] = [];
  const logger: Logger = {
    ...silentLogger,
    error: (message, fields) => void errors.push({ message, ...fields }),
    child: () => logger,
  };
  const programs = createTaskGroup(logger);
  const handed = new Map<string, Set<string>>();
  const runs = new Map<string, number>();
  const attempts = new Map<string, number>();
  const ends: (() => PromiseLike<void>)[] = [];
  const controllers: { end(): Promise<void> }[] = [];
  let facade: FakeFacade = NO_FACADE;
  let sequence = 0;

  for (const backend of [pod, vm]) {
    programs.spawn("executors", async (signal) => {
      const lives = new Map<string, AbortController>();
      // A handle of its own: what a test mutes, the world still sees.
      for await (const { name, executor } of backend.reopen().watch({ signal })) {
        // Only what is gone is surely dead: one that its backend calls ended may be cut off, and go on.
        const there = new Set([...backend.executors.values()].map((each) => each.uid));
        for (const [uid, life] of lives) {
          if (there.has(uid)) continue;
          life.abort(new DOMException("Killed", "AbortError"));
          lives.delete(uid);
        }
        if (executor === null || executor.ended !== null || lives.has(executor.uid)) continue;
        // What a test has put there runs nothing.
        if (!/^(fake|uid)-/.test(executor.uid)) continue;
        const task = name.slice(name.lastIndexOf("-") + 1);
        const attempt = (attempts.get(task) ?? 0) + 1;
        attempts.set(task, attempt);
        const life = new AbortController();
        lives.set(executor.uid, life);
        const plan: Plan = {
          fate: "well",
          result: "success",
          runMs: 1_000,
          ...world.plan(task, attempt),
        };
        programs.spawn(name, (all) =>
          runProgram({
            executor,
            task,
            plan,
            backend,
            clock,
            facade: () => facade,
            handed: (gate) => void handed.set(task, (handed.get(task) ?? new Set()).add(gate)),
            began: () => void runs.set(task, (runs.get(task) ?? 0) + 1),
          }, AbortSignal.any([all, life.signal])));
      }
    });
  }

  const world: World = {
    clock,
    gitea,
    queue,
    store,
    pod,
    vm,
    journal,
    errors,
    plan: () => ({}),
    handed,
    runs,
    cutOff: null,
    onJournal: () => {},
    async start(over = {}) {
      const stop = new AbortController();
      let dead = false;
      let fenced: string | null = null;
      let callsLeft = Infinity;
      const alive = () => {
        if (--callsLeft < 0 && !dead) controller.kill();
        return !dead;
      };
      const mine = createFakeFacade({ gitea: mortal(gitea, alive), clock });
      const engine = createEngine({
        gitea: mortal(gitea, alive),
        queue: mortal(queue, alive),
        records: mortal(store.records(), alive),
        control: mortal(store.control, alive),
        offers: mine.offers,
        backends: names.map((name) => mortal(name === "pod" ? pod : vm, alive)),
        ownership,
        statistics: createPhaseStatistics(),
        clock,
        logger,
        recorder: noRecorder,
        random: () => 0.5,
        open: (data) => codec.open(data),
        stepsOf,
        nonce: () => `nonce-${++sequence}`,
        identify: ownership.identify,
        launch: () => ({}),
        append(entry) {
          if (dead) return;
          journal.push(entry);
          world.onJournal(entry);
        },
        facadeSince: () => since,
        cutOff: () => world.cutOff,
        guard() {
          if (dead || fenced !== null) throw new Error("This controller must not act any more");
        },
        onRecovered: () => mine.offers.complete(),
        onFenced: (detail) => void (fenced ??= detail),
      }, {
        instance,
        capacity: { pod: options.capacity ?? 4, vm: options.capacity ?? 4 },
        zombieTimeoutMs: 600_000,
        heartbeatMaxRps: 5,
        claimTimeoutMs: 240_000,
        ...options.engine,
        ...over,
      });
      const since = clock.monotonic();
      mine.bind(engine.events);
      facade = mine;
      const running = engine.takeOver(stop.signal).then(() => engine.run(stop.signal))
        .catch((error) => {
          if (!stop.signal.aborted) throw error;
        });
      const controller: Controller = {
        engine,
        facade: mine,
        get fenced() {
          return fenced;
        },
        get dead() {
          return dead;
        },
        killAfter(calls) {
          callsLeft = calls;
        },
        kill() {
          dead = true;
          mine.close();
          if (facade === mine) facade = NO_FACADE;
          stop.abort(new DOMException("Killed", "AbortError"));
        },
        async stop() {
          stop.abort(new DOMException("Stopped", "AbortError"));
          await clock.advance(0);
          await running;
        },
      };
      controllers.push({
        async end() {
          controller.kill();
          await engine[Symbol.asyncDispose]();
          await running;
        },
      });
      current = controller;
      await clock.advance(0);
      return controller;
    },
    async seal(task) {
      const placed = await placing(task);
      if (placed.kind !== "assignment") throw new Error(placed.detail);
      return { info: placed.info, data: placed.envelope };
    },
    async submit(task, { backend = "pod" } = {}) {
      gitea.tasks.set(BigInt(task), gitea.tasks.get(BigInt(task)) ?? add());
      const { info, data } = await world.seal(taskOf(task, backend));
      const call = { signal: new AbortController().signal };
      const message = { id: info.id, backend, data, headers: {} };
      const stored = await queue.publish(message, call);
      current?.engine.stored(info, stored.sequence, clock.now());
      await clock.advance(0);
      return info;
    },
    async publish(task, data) {
      const message = { id: world.id(task), backend: "pod", data, headers: {} } as const;
      await queue.publish(message, { signal: new AbortController().signal });
      await clock.advance(0);
    },
    async until(what, probe, limitMs = 60_000) {
      const end = clock.now() + limitMs;
      await clock.advance(0);
      while (!probe()) {
        if (clock.now() >= end) {
          const told = journal.slice(-30).map((e) => `${e.assignment} ${e.event}`).join("\n  ");
          throw new Error(`Wait for ${what}: not within ${limitMs} ms; journal:\n  ${told}`);
        }
        await clock.advance(STEP_MS);
      }
    },
    cleaned: (task, limitMs) =>
      world.until(
        `task ${task} cleaned`,
        () => current?.engine.ledger.get(world.id(task))?.state.kind === "cleaned",
        limitMs,
      ),
    assertClean() {
      assert.deepEqual(queue.stored(), [], "messages");
      assert.deepEqual([...store.tasks.keys()], [], "records");
      assert.deepEqual([...pod.executors.keys(), ...vm.executors.keys()], [], "executors");
      assert.deepEqual([...pod.bound.keys(), ...vm.bound.keys()], [], "identity entries");
      for (const [id, task] of gitea.tasks) {
        assert.notEqual(task.result, Result.UNSPECIFIED, `task ${id} has not ended at Gitea`);
      }
      for (const name of names) {
        assert.deepEqual([...current?.engine.pools[name].holders() ?? []], [], `slots of ${name}`);
      }
      for (const [task, gates] of handed) {
        assert.equal(gates.size, 1, `task ${task} was handed to ${[...gates]}`);
      }
      for (const [task, count] of runs) assert.equal(count, 1, `runs of task ${task}`);
    },
    events: (task) => journal.filter((e) => e.assignment === world.id(task)).map((e) => e.event),
    id: idOf,
    onEnd: (end) => void ends.push(end),
    executor: (task) => executorName(instance, idOf(task)),
    async [Symbol.asyncDispose]() {
      for (const end of ends) await end();
      for (const controller of controllers) await controller.end();
      await programs[Symbol.asyncDispose]();
    },
  };
  let current: Controller | null = null;
  return world;
}

const STEP_MS = 250;

/** The task that {@link World.submit} hands out: two steps, a job key of its own. */
export function taskOf(task: number, backend: BackendName = "pod"): Task {
  const job = `job${task}`;
  return sampleTask({
    id: BigInt(task),
    context: { job },
    workflow:
      `jobs:\n  ${job}:\n    runs-on: [self-hosted, ${backend}]\n    steps:\n      - run: a\n      - run: b\n`,
  });
}

function idOf(task: number): AssignmentId {
  const id = parseTaskId(String(task));
  if (id === undefined) throw new RangeError(`Name task ${task}: not a task id`);
  return assignmentIdOf(id);
}
