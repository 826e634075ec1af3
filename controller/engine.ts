import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { retryForever } from "../lib/retry.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Backend, Executor } from "./backend.ts";
import { createClaims } from "./claims.ts";
import { createEffects } from "./effects.ts";
import { endExecutors } from "./farewell.ts";
import type { Entry } from "./entry.ts";
import type { Gitea } from "./gitea.ts";
import type { JournalEntry } from "./journal.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createLifecycle, DEFAULT_LIFECYCLE_TIMES, type LifecycleTimes } from "./lifecycle.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { DEFAULT_DELAYS, type Delays } from "./model/decide.ts";
import {
  assignmentIdOf,
  type BackendName,
  type ExecutorName,
  executorName,
  type Instance,
  parseTaskId,
} from "./model/ids.ts";
import type { ExecutorEvents, Offers } from "./offers.ts";
import { phasesOf, type PhaseStatistics } from "./phases.ts";
import { createPool, type Pool } from "./pool.ts";
import { createProcessor, type Opened } from "./processor.ts";
import type { AssignmentQueue } from "./queue.ts";
import { createRecordWriter } from "./record_writer.ts";
import { type ControlFlags, type ControlStore, NO_FLAGS, type Records } from "./records.ts";
import type { Recorder } from "./recorder.ts";
import { recoverBackend } from "./recovery.ts";
import { createHistory } from "./history.ts";
import { createStrangers, type Identified, type Stranger } from "./strangers.ts";
import { createVigil } from "./vigil.ts";
import { createWorker, type Ownership, type Worker } from "./worker.ts";

/** What one controller process is made of. */
export interface EngineDeps {
  readonly gitea: Gitea;
  readonly queue: AssignmentQueue;
  readonly records: Records;
  readonly control: ControlStore;
  readonly offers: Offers;
  readonly backends: readonly Backend[];
  readonly ownership: Ownership;
  readonly statistics: PhaseStatistics;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly recorder: Recorder;
  readonly random: () => number;
  open(data: Uint8Array): Promise<Opened>;
  stepsOf(task: Task): number;
  nonce(): string;
  identify(executor: Executor): Identified;
  launch(info: AssignmentInfo): Readonly<Record<string, string>>;
  /** Takes an entry for the events stream. */
  append(entry: JournalEntry): void;
  /** When the facade began to listen, monotonic; null while it does not. */
  facadeSince(): number | null;
  /** Throws when this process may not act any more. */
  guard(): void;
  /** Every backend is recovered: what is not known now does not exist. */
  onRecovered(): void;
  /** A newer epoch was seen: another controller leads. */
  onFenced(detail: string): void;
}

/** Settings of the engine; times in milliseconds. */
export interface EngineOptions {
  readonly instance: Instance;
  readonly capacity: Readonly<Record<BackendName, number>>;
  readonly zombieTimeoutMs: number;
  readonly heartbeatMaxRps: number;
  readonly claimTimeoutMs: number;
  readonly delays?: Delays;
  readonly lifecycle?: LifecycleTimes;
}

/** The acting half of the program: everything that only the leader does. */
export interface Engine extends AsyncDisposable {
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  /** For the facade. */
  readonly events: ExecutorEvents;
  /** Epoch of this process; 0 before it has taken over. */
  epoch(): number;
  flags(backend: BackendName): ControlFlags;
  strangers(backend: BackendName): readonly Stranger[];
  /** True when every backend is recovered. */
  ready(): boolean;
  /** The scheduler has stored a task. */
  stored(info: AssignmentInfo, sequence: number, storedAt: number): void;
  /** Reads the flags and raises the epoch; retried until it holds. Nothing acts before this. */
  takeOver(signal: AbortSignal): Promise<void>;
  /** Recovers, then consumes, until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Ends every executor (clean stop of the embedded profile); call it after {@link run} has ended. */
  endExecutors(signal: AbortSignal): Promise<void>;
}

const IN_PROGRESS_MS = 15_000;

/** Puts the controller's parts together. */
export function createEngine(deps: EngineDeps, options: EngineOptions): Engine {
  const { clock, records, queue, offers, recorder } = deps;
  const logger = deps.logger;
  const tasks = createTaskGroup(logger);
  const names = deps.backends.map((b) => b.name);
  const recovered = new Set<BackendName>();
  const flags = new Map<BackendName, ControlFlags>();
  let epoch = 0;

  const makePool = (name: BackendName) =>
    createPool({
      capacity: () => flags.get(name)?.capacity?.value ?? options.capacity[name],
      open: () => recovered.has(name) && flags.get(name)?.cordon == null,
    });
  const pools = { pod: makePool("pod"), vm: makePool("vm") };

  const history = createHistory({ logger, recorder, append: deps.append });
  const writer = createRecordWriter({ records, epoch: () => epoch, onFenced: deps.onFenced });
  const nameOf = (info: Pick<AssignmentInfo, "id">) => executorName(options.instance, info.id);
  const workers = new Map<BackendName, Worker>();
  const effects = createEffects({
    clock,
    random: deps.random,
    logger,
    tasks,
    gitea: deps.gitea,
    offers,
    writer,
    claimTimeoutMs: options.claimTimeoutMs,
    worker: workerOf,
    ledger: () => ledger,
    guard: deps.guard,
  });
  const ledger = createLedger({
    clock,
    journal: history,
    pools,
    delays: options.delays ?? DEFAULT_DELAYS,
    run: effects.run,
  });
  for (const backend of deps.backends) {
    workers.set(
      backend.name,
      createWorker({
        backend,
        ownership: deps.ownership,
        writer,
        clock,
        nameOf,
        launch: deps.launch,
        nonce: deps.nonce,
        write: ledger.write,
        guard: deps.guard,
      }),
    );
  }
  const strangers = new Map(deps.backends.map((backend) => [
    backend.name,
    createStrangers({ backend, logger, identify: deps.identify }),
  ]));
  const vigil = createVigil({
    clock,
    logger,
    gitea: deps.gitea,
    ledger,
    zombieTimeoutMs: options.zombieTimeoutMs,
    maxRps: options.heartbeatMaxRps,
    near: (entry) => isNear(entry),
  });
  const events = createClaims({
    clock,
    logger,
    tasks,
    gitea: deps.gitea,
    ledger,
    writer,
    stopWaiting: vigil.stop,
    guard: deps.guard,
  });
  measurePhases(ledger, deps.statistics, recorder, tasks.signal);

  function workerOf(name: BackendName): Worker {
    const worker = workers.get(name);
    if (worker === undefined) throw new Error(`Use backend "${name}": it is not enabled here`);
    return worker;
  }

  /** Among the next `capacity` to be admitted. */
  function isNear(entry: Entry): boolean {
    const { backend } = entry.info;
    let before = 0;
    for (const other of ledger.entries()) {
      if (other === entry) return before < pools[backend].capacity();
      if (other.info.backend === backend && other.state.kind === "stored") before++;
    }
    return false;
  }

  const forever = <T>(what: string, signal: AbortSignal, operation: () => Promise<T>) =>
    retryForever(operation, {
      clock,
      random: deps.random,
      backoff: { firstMs: 500, maxMs: 15_000 },
      signal,
      onError: (error) => logger.error("backend lifecycle error", { action: what, error }),
    });

  const runBackend = async (worker: Worker, signal: AbortSignal) => {
    const { backend } = worker;
    const strange = strangers.get(backend.name);
    if (strange === undefined) return;
    const found = await forever(
      `recover ${backend.name}`,
      signal,
      async () =>
        await recoverBackend({
          ...deps,
          worker,
          ledger,
          strangers: strange,
          records: await records.list({ signal }),
          run: effects.run,
        }, signal),
    );
    logger.info("backend recovered", { component: "lifecycle", backend: backend.name, ...found });
    await forever(
      `reset consumer ${backend.name}`,
      signal,
      () => queue.resetConsumer(backend.name, { signal }),
    );
    recovered.add(backend.name);
    if (names.every((name) => recovered.has(name))) deps.onRecovered();
    pools[backend.name].refresh();
    const processor = createProcessor({
      backend: backend.name,
      queue,
      records,
      writer,
      offers,
      pool: pools[backend.name],
      ledger,
      clock,
      logger,
      open: deps.open,
      nonce: deps.nonce,
      stepsOf: deps.stepsOf,
      recheck: effects.recheck,
    });
    const lifecycle = createLifecycle({
      worker,
      ledger,
      clock,
      logger,
      recorder,
      strangers: strange,
      times: options.lifecycle ?? DEFAULT_LIFECYCLE_TIMES,
      assignmentOf: (name) => assignmentOf(options.instance, name),
      facadeSince: deps.facadeSince,
      run: effects.run,
      recheck: effects.recheck,
    });
    await Promise.all([
      forever(`consume ${backend.name}`, signal, () => processor.run(signal)),
      lifecycle.run(signal),
    ]);
  };

  /** Tells JetStream that the messages in hand are being worked on. */
  const signalProgress = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await clock.sleep(IN_PROGRESS_MS, signal).catch(() => {});
      for (const entry of ledger.entries()) entry.message?.inProgress();
    }
  };

  return {
    ledger,
    pools,
    events,
    epoch: () => epoch,
    flags: (name) => flags.get(name) ?? NO_FLAGS,
    strangers: (name) => strangers.get(name)?.list() ?? [],
    ready: () => names.every((name) => recovered.has(name)),
    stored(info, sequence, storedAt) {
      const entry = ledger.get(info.id) ?? ledger.add(info, { kind: "stored" }, storedAt);
      entry.sequence ??= sequence;
      if (entry.state.kind === "stored" && entry.reason === null) {
        const cordoned = flags.get(info.backend)?.cordon ?? null;
        entry.reason = cordoned === null
          ? { code: "awaiting_slot", detail: "waits for a free slot", since: clock.now() }
          : { code: "backend_cordoned", detail: cordoned.note, since: clock.now() };
        ledger.touch(entry);
      }
    },
    async takeOver(signal) {
      for (const name of names) {
        const read = () => deps.control.flags(name, { signal });
        flags.set(name, await forever(`read flags of ${name}`, signal, read));
      }
      epoch = await forever("raise the epoch", signal, () => deps.control.takeOver({ signal }));
      logger.info("took over", { component: "leader", epoch });
    },
    async run(signal) {
      await Promise.all([
        ...[...workers.values()].map((worker) => runBackend(worker, signal)),
        vigil.run(signal),
        signalProgress(signal),
      ]).catch((error) => {
        if (!signal.aborted) throw error;
      });
    },
    endExecutors: (signal) =>
      endExecutors({ ledger, writer, clock, logger, worker: workerOf }, signal),
    [Symbol.asyncDispose]: () => tasks[Symbol.asyncDispose](),
  };
}

function assignmentOf(instance: Instance, name: ExecutorName) {
  const prefix = `ci-${instance}-`;
  const task = name.startsWith(prefix) ? parseTaskId(name.slice(prefix.length)) : undefined;
  return task === undefined ? undefined : assignmentIdOf(task);
}

/** Feeds each finished phase to statistics and metrics once. */
function measurePhases(
  ledger: Ledger,
  statistics: PhaseStatistics,
  recorder: Recorder,
  signal: AbortSignal,
): void {
  const measured = new WeakSet<Entry>();
  ledger.subscribe((entry) => {
    if (entry.state.kind !== "cleaned" || measured.has(entry)) return;
    measured.add(entry);
    const { backend } = entry.info;
    for (const span of phasesOf(entry.journal, entry.createdAt)) {
      if (span.endedAt === null) continue;
      const ms = Math.max(0, span.endedAt - span.startedAt);
      statistics.add(backend, span.name, ms);
      recorder.phase(backend, span.name, ms / 1_000);
    }
    const claimed = entry.journal.find((e) => e.event === "runner_claimed");
    if (claimed !== undefined) statistics.add(backend, "to_start", claimed.at - entry.createdAt);
  }, signal);
}
