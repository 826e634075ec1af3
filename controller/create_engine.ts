import { retryForever } from "../lib/retry.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { together } from "../lib/together.ts";
import { createAdmission, type WaitingReason } from "./admission.ts";
import { createClaims } from "./claims.ts";
import { createEffects } from "./effects.ts";
import { watchEpoch } from "./leadership/epoch_watch.ts";
import { endExecutors } from "./farewell.ts";
import { createFlags } from "./flags.ts";
import { createInquiry } from "./inquiry.ts";
import { createLedger } from "./ledger.ts";
import { DEFAULT_LIFECYCLE_TIMES } from "./lifecycle.ts";
import { DEFAULT_DELAYS } from "./model/decision.ts";
import { type BackendName, executorName } from "./model/ids.ts";
import { measurePhases } from "./phase_meter.ts";
import { createPool } from "./pool.ts";
import { createRelease } from "./release.ts";
import { createRetry } from "./retry.ts";
import { createRecordWriter } from "./record_writer.ts";
import { createProofs } from "./proofs.ts";
import { createRebind } from "./rebind.ts";
import { serveBackend } from "./serve_backend.ts";
import { createHistory } from "./history.ts";
import { createStrangerRegistry, type StrangerRegistry } from "./stranger_registry.ts";
import { createVigil } from "./vigil.ts";
import { createWaitingRows } from "./waiting_rows.ts";
import type { Worker } from "./worker.ts";
import { createWorkers, type Workers } from "./workers.ts";
import type { Engine, EngineDeps, EngineOptions } from "./engine.ts";

const IN_PROGRESS_MS = 15_000;
const MAX_WAIT_MS = 7_200_000;

/** Why jobs wait while the backend's executors cannot be listed: whether slots are free is not known. */
const UNREAD: WaitingReason = {
  code: "backend_unavailable",
  detail: "waits until the backend has told which executors there are",
};

/** Puts the controller's parts together. */
export function createEngine(deps: EngineDeps, options: EngineOptions): Engine {
  const { clock, logger, records, control, queue, gitea, offers, guard, onFenced } = deps;
  const tasks = createTaskGroup(logger);
  const delays = options.delays ?? DEFAULT_DELAYS;
  const times = options.lifecycle ?? DEFAULT_LIFECYCLE_TIMES;
  const names = deps.backends.map((b) => b.name);
  const recovered = new Set<BackendName>();
  const admission = createAdmission(deps.cutOff);
  let epoch = 0;

  const makePool = (name: BackendName) =>
    createPool({
      capacity: () => admission.flags(name).capacity?.value ?? options.capacity[name],
      open: () => recovered.has(name) && admission.closed(name) === null,
      unknown: () =>
        strangers.shown(name).filter(({ ownership }) => ownership === "unknown").length,
    });
  const pools = { pod: makePool("pod"), vm: makePool("vm") };
  const waitingFor = (name: BackendName): WaitingReason =>
    recovered.has(name) ? admission.waiting(name) : admission.closed(name) ?? UNREAD;

  const history = createHistory({
    ...deps,
    append(entry) {
      const info = ledger.get(entry.assignment)?.info;
      if (info === undefined) return deps.append(entry);
      const { repository, job, ref, runId, giteaUrl } = info;
      const named = ref === undefined ? {} : { ref };
      deps.append({ ...entry, subject: { repository, job, ...named, runId, giteaUrl } });
    },
  });
  const writer = createRecordWriter({ records, control, epoch: () => epoch, onFenced });
  const effects = createEffects({
    ...deps,
    tasks,
    writer,
    claimTimeoutMs: options.claimTimeoutMs,
    worker: (name) => workers.of(name),
    ledger: () => ledger,
  });
  const ledger = createLedger({ clock, journal: history, pools, delays, run: effects.run });
  const vigil = createVigil({
    ...{ clock, logger, gitea, ledger },
    rows: createWaitingRows({ clock, gitea, ledger, pools }),
    zombieTimeoutMs: options.zombieTimeoutMs,
    maxRps: options.heartbeatMaxRps,
    near: (name) => pools[name].capacity(),
    signal: tasks.signal,
  });
  const workers: Workers = createWorkers({
    ...deps,
    writer,
    nameOf: ({ id }) => executorName(options.instance, id),
    write: ledger.write,
    confirm: vigil.confirm,
  });
  const strangers: StrangerRegistry = createStrangerRegistry({
    ...deps,
    workers,
    ledger,
    admission,
    onChange: (name) => pools[name].refresh(),
  });
  const proofs = createProofs({
    ...deps,
    tasks,
    ledger,
    writer,
    backend: (name) => workers.of(name).backend,
    strangers: strangers.of,
    isForgotten: (name, { uid }) =>
      admission.flags(name).forgotten?.some((each) => each.uid === uid) ?? false,
  });
  const events = createClaims({
    ...deps,
    tasks,
    ledger,
    writer,
    stopWaiting: vigil.stop,
    isGone: workers.isGone,
    shown: proofs.shown,
  });
  const inquiry = createInquiry({
    ...deps,
    tasks,
    ledger,
    restoredMs: times.silenceMs,
    zombieTimeoutMs: options.zombieTimeoutMs,
  });
  const flags = createFlags({ admission, ledger, pools, clock });
  measurePhases(ledger, deps, tasks.signal);

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
    return serveBackend({
      ...deps,
      worker,
      strangers: strangers.of(name),
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
      rebind: createRebind({ logger, tasks, backend: worker.backend, guard }),
      forever: (what, operation) => forever(what, signal, operation),
      recovered() {
        recovered.add(name);
        for (const entry of ledger.inState(name, "stored")) {
          if (entry.reason?.detail !== UNREAD.detail) continue;
          entry.reason = { ...admission.waiting(name), since: clock.now() };
          ledger.touch(entry);
        }
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

  return {
    ledger,
    pools,
    events,
    epoch: () => epoch,
    flags: flags.of,
    setFlags: flags.set,
    reachChanged: flags.refresh,
    watchFlags: flags.watch,
    release: createRelease({ ledger, offers, writer, clock, run: effects.run, guard }),
    recovered: (name) => recovered.has(name),
    strangers: strangers.shown,
    removeStranger: strangers.remove,
    ready: () => names.every((name) => recovered.has(name)),
    stored(info, sequence, storedAt) {
      const entry = ledger.get(info.id) ?? ledger.add(info, { kind: "stored" }, storedAt);
      entry.sequence ??= sequence;
      if (entry.state.kind === "stored" && entry.reason === null) {
        entry.reason = { ...waitingFor(info.backend), since: clock.now() };
        ledger.touch(entry);
      }
    },
    retry: createRetry({ ledger, queue, writer, guard }),
    async takeOver(signal) {
      for (const name of names) {
        const read = () => control.flags(name, { signal });
        admission.set(name, await forever(`read flags of ${name}`, signal, read));
      }
      epoch = await forever("raise the epoch", signal, () => control.takeOver({ signal }));
      logger.info("took over", { component: "leader", epoch });
    },
    async run(signal) {
      await together([
        ...workers.all().map((worker) => (stop: AbortSignal) => serve(worker, stop)),
        vigil.run,
        signalProgress,
        (stop) => watchEpoch({ control, clock, epoch: () => epoch, onFenced }, stop),
      ], signal).catch((error) => {
        if (!signal.aborted) throw error;
      });
    },
    endExecutors: (signal) =>
      endExecutors({
        ...{ ledger, writer, clock, logger },
        worker: workers.of,
        closeClaims: events.close,
        run: effects.run,
      }, signal),
    [Symbol.asyncDispose]: () => tasks[Symbol.asyncDispose](),
  };
}
