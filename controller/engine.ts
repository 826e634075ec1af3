import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { retryForever } from "../lib/retry.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import { createAdmission } from "./admission.ts";
import type { Backend, Executor } from "./backend.ts";
import { createClaims } from "./claims.ts";
import { createEffects } from "./effects.ts";
import type { Entry } from "./entry.ts";
import { endExecutors } from "./farewell.ts";
import type { Gitea } from "./gitea.ts";
import type { JournalEntry } from "./journal.ts";
import { createInquiry } from "./inquiry.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { DEFAULT_LIFECYCLE_TIMES, type LifecycleTimes } from "./lifecycle.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import { DEFAULT_DELAYS, type Delays } from "./model/decide.ts";
import { type AssignmentId, type BackendName, executorName, type Instance } from "./model/ids.ts";
import type { ExecutorEvents, Offers } from "./offers.ts";
import { measurePhases } from "./phase_meter.ts";
import type { PhaseStatistics } from "./phases.ts";
import type { ReasonCode } from "./model/reason.ts";
import { createPool, type Pool } from "./pool.ts";
import { createRelease, type Release } from "./release.ts";
import { createRetry, type RetryOutcome } from "./retry.ts";
import type { Opened } from "./processor.ts";
import type { AssignmentQueue } from "./queue.ts";
import { createRecordWriter } from "./record_writer.ts";
import type { ControlFlags, ControlStore, Records } from "./records.ts";
import { createProofs } from "./proofs.ts";
import { createRebind } from "./rebind.ts";
import type { Recorder } from "./recorder.ts";
import { serveBackend } from "./serve_backend.ts";
import { createHistory } from "./history.ts";
import { SILENCE_ALONE_MS, silenceOf } from "./silence.ts";
import { createStrangers, type Identified, type Stranger, type Strangers } from "./strangers.ts";
import { createVigil } from "./vigil.ts";
import { createWaitingRows } from "./waiting_rows.ts";
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
  /** A task that waits longer than this is failed at Gitea; 2 h by default. */
  readonly maxWaitMs?: number;
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
  /** Flags that are stored now: from here on they hold. */
  setFlags(backend: BackendName, flags: ControlFlags): void;
  /** Calls back after each {@link setFlags}, until the signal aborts. */
  watchFlags(listener: (backend: BackendName) => void, signal: AbortSignal): void;
  strangers(backend: BackendName): readonly Stranger[];
  /** Deletes exactly this executor that belongs to no assignment; throws `BackendError`. */
  removeStranger(
    backend: BackendName,
    executor: Pick<Executor, "name" | "uid">,
    signal: AbortSignal,
  ): Promise<"gone" | "leaving">;
  /** True when every backend is recovered. */
  ready(): boolean;
  /** True when this one is: what is not in the ledger of it does not exist. */
  recovered(backend: BackendName): boolean;
  /** What operators may do to end an assignment. */
  readonly release: Release;
  /** The scheduler has stored a task. */
  stored(info: AssignmentInfo, sequence: number, storedAt: number): void;
  /** Tries a parked assignment now; see {@link createRetry}. */
  retry(id: AssignmentId, signal: AbortSignal): Promise<RetryOutcome>;
  /** Reads the flags and raises the epoch; retried until it holds. Nothing acts before this. */
  takeOver(signal: AbortSignal): Promise<void>;
  /** Recovers, then consumes, until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Ends every executor (clean stop of the embedded profile); call it after {@link run} has ended. */
  endExecutors(signal: AbortSignal): Promise<void>;
}

const IN_PROGRESS_MS = 15_000;
const PRESENCE_MS = 1_000;
/** Between looks at who leads; a record write tells it too, but an idle process writes none. */
const EPOCH_MS = 5_000;
const MAX_WAIT_MS = 7_200_000;
/** Reasons that operators' flags give and take. */
const ADMISSION_REASONS: ReadonlySet<ReasonCode> = new Set(["awaiting_slot", "backend_cordoned"]);

/** Puts the controller's parts together. */
export function createEngine(deps: EngineDeps, options: EngineOptions): Engine {
  const { clock, records, queue, offers, recorder } = deps;
  const logger = deps.logger;
  const tasks = createTaskGroup(logger);
  const delays = options.delays ?? DEFAULT_DELAYS;
  const times = options.lifecycle ?? DEFAULT_LIFECYCLE_TIMES;
  const names = deps.backends.map((b) => b.name);
  const recovered = new Set<BackendName>();
  const admission = createAdmission();
  const flagListeners = new Set<(backend: BackendName) => void>();
  let epoch = 0;

  const makePool = (name: BackendName) =>
    createPool({
      capacity: () => admission.flags(name).capacity?.value ?? options.capacity[name],
      open: () => recovered.has(name) && admission.closed(name) === null,
      unknown: () => strangersOf(name).filter(({ ownership }) => ownership === "unknown").length,
    });
  const pools = { pod: makePool("pod"), vm: makePool("vm") };

  const history = createHistory({
    logger,
    recorder,
    append(entry) {
      const info = ledger.get(entry.assignment)?.info;
      if (info === undefined) return deps.append(entry);
      const { repository, job, ref, runId, giteaUrl } = info;
      const named = ref === undefined ? {} : { ref };
      deps.append({ ...entry, subject: { repository, job, ...named, runId, giteaUrl } });
    },
  });
  const { control, onFenced } = deps;
  const writer = createRecordWriter({ records, control, epoch: () => epoch, onFenced });
  const nameOf = (info: Pick<AssignmentInfo, "id">) => executorName(options.instance, info.id);
  const workers = new Map<BackendName, Worker>();
  const effects = createEffects({
    clock,
    random: deps.random,
    logger,
    tasks,
    gitea: deps.gitea,
    queue,
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
    delays,
    run: effects.run,
  });
  const vigil = createVigil({
    clock,
    logger,
    gitea: deps.gitea,
    ledger,
    rows: createWaitingRows({ clock, gitea: deps.gitea, ledger, pools }),
    zombieTimeoutMs: options.zombieTimeoutMs,
    maxRps: options.heartbeatMaxRps,
    near: (name) => pools[name].capacity(),
    signal: tasks.signal,
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
        confirm: vigil.confirm,
        isSilent: (entry) =>
          silenceOf(entry, { now: clock.monotonic(), facadeSince: deps.facadeSince() }) >=
            SILENCE_ALONE_MS[backend.name],
        guard: deps.guard,
      }),
    );
  }
  const strangers = new Map<BackendName, Strangers>();
  for (const backend of deps.backends) {
    strangers.set(
      backend.name,
      createStrangers({
        backend,
        logger,
        identify: deps.identify,
        isLeftover: (executor) => isLeftover(backend.name, executor),
        guard: deps.guard,
        onChange: () => pools[backend.name].refresh(),
      }),
    );
  }
  const proofs = createProofs({
    ...deps,
    tasks,
    ledger,
    writer,
    backend: (name) => workerOf(name).backend,
    strangers: strangersNamed,
    isForgotten: (name, { uid }) =>
      admission.flags(name).forgotten?.some((each) => each.uid === uid) ?? false,
  });
  const events = createClaims({
    clock,
    logger,
    tasks,
    gitea: deps.gitea,
    ledger,
    writer,
    stopWaiting: vigil.stop,
    isGone,
    shown: proofs.shown,
    guard: deps.guard,
  });
  const inquiry = createInquiry({
    clock,
    logger,
    tasks,
    gitea: deps.gitea,
    ledger,
    restoredMs: times.silenceMs,
    zombieTimeoutMs: options.zombieTimeoutMs,
    guard: deps.guard,
  });
  measurePhases(ledger, deps, tasks.signal);

  /** Those that an operator has given up are still shown, but hold no slot. */
  function strangersOf(name: BackendName): readonly Stranger[] {
    const list = strangers.get(name)?.list() ?? [];
    const { forgotten = [] } = admission.flags(name);
    if (forgotten.length === 0) return list;
    return list.map((stranger) => {
      const given = forgotten.find(({ uid }) => uid === stranger.executor.uid);
      return given === undefined || stranger.ownership !== "unknown" ? stranger : {
        ...stranger,
        ownership: "forgotten",
        why: `${stranger.why}; given up by ${given.by}, it holds no slot`,
      };
    });
  }

  function strangersNamed(name: BackendName): Strangers {
    const named = strangers.get(name);
    if (named === undefined) throw new Error(`Use backend "${name}": it is not enabled here`);
    return named;
  }

  function workerOf(name: BackendName): Worker {
    const worker = workers.get(name);
    if (worker === undefined) throw new Error(`Use backend "${name}": it is not enabled here`);
    return worker;
  }

  /** A backend that does not answer holds up no claim: its silence proves nothing. */
  async function isGone({ info, executor }: Entry, signal: AbortSignal): Promise<boolean> {
    using patience = clock.timeout(PRESENCE_MS);
    const stop = AbortSignal.any([signal, patience.signal]);
    try {
      const { backend } = workerOf(info.backend);
      const found = await abortable(backend.find(nameOf(info), { signal: stop }), stop);
      // One that is being deleted would lose the job.
      return found === undefined || found.uid !== executor?.uid || found.ended !== null ||
        found.terminating;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  /** Made for an assignment that is over: marked and ended, or known to have been ours. */
  async function isLeftover(name: BackendName, executor: Executor): Promise<boolean> {
    const identified = deps.identify(executor);
    if (identified.kind !== "ours") return false;
    if (executor.terminal && executor.ended !== null) return true;
    const entry = ledger.get(identified.info.id);
    if (entry?.state.kind !== "cleaned") return false;
    const worker = workerOf(name);
    return await worker.isOurs(entry, executor) || await worker.isSpare(entry, executor);
  }

  const forever = <T>(what: string, signal: AbortSignal, operation: () => Promise<T>) =>
    retryForever(operation, {
      clock,
      random: deps.random,
      backoff: { firstMs: 500, maxMs: 15_000 },
      signal,
      onError: (error) => logger.error("backend lifecycle error", { action: what, error }),
    });

  const serve = (worker: Worker, signal: AbortSignal) => {
    const { name } = worker.backend;
    const stranger = strangers.get(name);
    if (stranger === undefined) return Promise.resolve();
    return serveBackend({
      ...deps,
      worker,
      strangers: stranger,
      proofs,
      pool: pools[name],
      admission,
      instance: options.instance,
      times,
      maxWaitMs: options.maxWaitMs ?? MAX_WAIT_MS,
      parkMs: delays.parkMs,
      writer,
      ledger,
      run: effects.run,
      inquire: inquiry.consider,
      rebind: createRebind({ logger, tasks, backend: worker.backend, guard: deps.guard }),
      forever: (what, operation) => forever(what, signal, operation),
      recovered() {
        recovered.add(name);
        if (names.every((each) => recovered.has(each))) deps.onRecovered();
        pools[name].refresh();
      },
    }, signal);
  };

  /** Tells JetStream that the messages in hand are being worked on. */
  const signalProgress = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await clock.sleep(IN_PROGRESS_MS, signal).catch(() => {});
      for (const entry of ledger.entries()) entry.message?.inProgress();
    }
  };

  /** Notices another leader also while there is nothing to write: told of it, or by looking. */
  const watchEpoch = async (signal: AbortSignal) => {
    const fencedBy = (leading: number) => {
      if (leading <= epoch) return false;
      onFenced(`epoch ${leading} leads, ours is ${epoch}`);
      return true;
    };
    deps.control.watchEpoch((leading) => void fencedBy(leading), signal);
    let low = 0;
    while (!signal.aborted) {
      await clock.sleep(EPOCH_MS, signal).catch(() => {});
      const leading = await deps.control.epoch({ signal }).catch(() => epoch);
      if (fencedBy(leading)) return;
      // Once may be the word of a replica of the bucket that lags behind.
      low = leading < epoch ? low + 1 : 0;
      if (low > 1) {
        return onFenced(`epoch ${leading} is stored, ours is ${epoch}: records are lost`);
      }
    }
  };

  return {
    ledger,
    pools,
    events,
    epoch: () => epoch,
    flags: admission.flags,
    setFlags(name, flags) {
      admission.set(name, flags);
      pools[name].refresh();
      // Those that wait say at once why; one that waits for something else keeps its reason.
      for (const entry of ledger.inState(name, "stored")) {
        const waiting = admission.waiting(name);
        const { reason } = entry;
        if (reason !== null && !ADMISSION_REASONS.has(reason.code)) continue;
        if (reason?.code === waiting.code && reason.detail === waiting.detail) continue;
        entry.reason = { ...waiting, since: clock.now() };
        ledger.touch(entry);
      }
      for (const listener of flagListeners) listener(name);
    },
    watchFlags(listener, signal) {
      if (signal.aborted) return;
      flagListeners.add(listener);
      signal.addEventListener("abort", () => flagListeners.delete(listener), { once: true });
    },
    release: createRelease({
      ledger,
      offers,
      writer,
      clock,
      run: effects.run,
      guard: deps.guard,
    }),
    recovered: (name) => recovered.has(name),
    strangers: strangersOf,
    async removeStranger(name, executor, signal) {
      deps.guard();
      const { backend } = workerOf(name);
      await backend.delete(executor, { signal });
      const left = await backend.find(executor.name, { signal });
      if (left?.uid === executor.uid) return "leaving";
      strangers.get(name)?.forget(executor.name);
      return "gone";
    },
    ready: () => names.every((name) => recovered.has(name)),
    stored(info, sequence, storedAt) {
      const entry = ledger.get(info.id) ?? ledger.add(info, { kind: "stored" }, storedAt);
      entry.sequence ??= sequence;
      if (entry.state.kind === "stored" && entry.reason === null) {
        entry.reason = { ...admission.waiting(info.backend), since: clock.now() };
        ledger.touch(entry);
      }
    },
    retry: createRetry({ ledger, queue, writer, guard: deps.guard }),
    async takeOver(signal) {
      for (const name of names) {
        const read = () => deps.control.flags(name, { signal });
        admission.set(name, await forever(`read flags of ${name}`, signal, read));
      }
      epoch = await forever("raise the epoch", signal, () => deps.control.takeOver({ signal }));
      logger.info("took over", { component: "leader", epoch });
    },
    async run(signal) {
      await Promise.all([
        ...[...workers.values()].map((worker) => serve(worker, signal)),
        vigil.run(signal),
        signalProgress(signal),
        watchEpoch(signal),
      ]).catch((error) => {
        if (!signal.aborted) throw error;
      });
    },
    endExecutors: (signal) =>
      endExecutors({
        ledger,
        writer,
        clock,
        logger,
        worker: workerOf,
        closeClaims: events.close,
        run: effects.run,
      }, signal),
    [Symbol.asyncDispose]: () => tasks[Symbol.asyncDispose](),
  };
}
