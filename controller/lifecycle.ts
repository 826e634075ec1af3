import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Executor, ExecutorChange } from "./backend.ts";
import type { Deed } from "./effects.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentId, ExecutorName } from "./model/ids.ts";
import type { Recorder } from "./recorder.ts";
import type { Strangers } from "./strangers.ts";
import type { Worker } from "./worker.ts";

/** Times of the lifecycle rules, milliseconds (SPEC 10). */
export interface LifecycleTimes {
  /** Between full lists. */
  readonly listMs: number;
  /** Between looks at rules that depend on time. */
  readonly tickMs: number;
  /** Silence, beside the backend's word, that proves a claimed executor lost. */
  readonly silenceMs: number;
  /** A terminal executor that lives longer than this is deleted. */
  readonly lingerMs: number;
}

/** SPEC 10. */
export const DEFAULT_LIFECYCLE_TIMES: LifecycleTimes = {
  listMs: 30_000,
  tickMs: 1_000,
  silenceMs: 60_000,
  lingerMs: 60_000,
};

/**
 * Keeps what the ledger believes and what the backend holds the same. Level-based: a change only
 * says "look at this one"; a full list repairs what changes missed.
 */
export function createLifecycle(deps: {
  readonly worker: Worker;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly recorder: Recorder;
  readonly strangers: Strangers;
  readonly times: LifecycleTimes;
  /** Which assignment an executor of ours is named after. */
  assignmentOf(name: ExecutorName): AssignmentId | undefined;
  /** When the facade began to listen, monotonic milliseconds; null while it does not. */
  facadeSince(): number | null;
  run(entry: Entry, effect: Deed): void;
  recheck(entry: Entry): void;
}): { run(signal: AbortSignal): Promise<void> } {
  const { ledger, clock, times } = deps;
  const { backend } = deps.worker;
  const logger = deps.logger.child({ component: "lifecycle", backend: backend.name });

  const look = async (change: ExecutorChange, signal: AbortSignal) => {
    const id = deps.assignmentOf(change.name);
    const entry = id === undefined ? undefined : ledger.get(id);
    if (entry === undefined || entry.state.kind === "cleaned") {
      return await deps.strangers.look(change, signal);
    }
    deps.strangers.forget(change.name);
    const { executor } = change;
    if (executor === null) return gone(entry);
    entry.executor = executor;
    if (executor.ended !== null) return ended(entry, executor);
    ledger.touch(entry);
  };

  const gone = (entry: Entry) => {
    if (entry.executor === null && entry.state.kind !== "running") return;
    if (inTheMaking(entry)) {
      entry.executor = null;
      return deps.recheck(entry);
    }
    ledger.dispatch(entry.info.id, { kind: "executor_gone" });
  };

  const ended = (entry: Entry, executor: Executor) => {
    if (executor.ended !== null) entry.lastLines = executor.ended.lastLines;
    if (inTheMaking(entry)) return deps.recheck(entry);
    ledger.dispatch(entry.info.id, { kind: "executor_ended" });
  };

  /** Everything the backend holds, and everything we believe it holds. */
  const listAll = async (signal: AbortSignal) => {
    const believed = new Map<ExecutorName, Entry>();
    for (const entry of ledger.entries()) {
      if (entry.info.backend === backend.name && entry.executor !== null && isLive(entry)) {
        believed.set(entry.executor.name, entry);
      }
    }
    const asked = clock.monotonic();
    const executors = await backend.list({ signal });
    deps.recorder.watchEvent(`${backend.name}-list`);
    for (const executor of executors) {
      believed.delete(executor.name);
      await look({ name: executor.name, executor }, signal);
    }
    deps.strangers.keepOnly(new Set(executors.map((e) => e.name)));
    for (const [name, entry] of believed) {
      // Made after the list was asked for: the next one will have it.
      if (entry.executor !== null && entry.executor.createdAt > clock.now() - times.listMs / 2) {
        if (clock.monotonic() - asked < times.listMs) continue;
      }
      await look({ name, executor: null }, signal);
    }
  };

  const tick = () => {
    const now = clock.monotonic();
    for (const entry of ledger.entries()) {
      if (entry.info.backend !== backend.name) continue;
      const { state } = entry;
      if ((state.kind === "claimed" || state.kind === "running") && state.presence !== "alive") {
        const facade = deps.facadeSince();
        if (facade === null) continue;
        const silentSince = Math.max(facade, entry.lastSeen ?? 0);
        if (now - silentSince >= times.silenceMs) lost(entry);
      } else if (
        state.kind === "terminal" && state.presence === "alive" &&
        clock.now() - entry.stateSince >= times.lingerMs
      ) {
        ledger.dispatch(entry.info.id, { kind: "executor_ended" });
        if (state.marker !== "held") deps.run(entry, { kind: "delete_executor" });
      }
    }
  };

  const lost = (entry: Entry) => {
    const ending = entry.executor?.ended;
    const detail = entry.terminating !== null
      ? `the executor was terminated: ${entry.terminating}`
      : ending != null
      ? `the executor ended without a result: ${ending.detail}`
      : "the executor vanished without a result";
    ledger.dispatch(entry.info.id, { kind: "lost", code: "executor_lost", detail });
  };

  const repeat = async (name: string, ms: number, signal: AbortSignal, work: () => unknown) => {
    while (!signal.aborted) {
      try {
        await work();
      } catch (error) {
        if (signal.aborted) return;
        logger.error("backend lifecycle error", { action: name, error });
      }
      await clock.sleep(ms, signal).catch(() => {});
    }
  };

  const watch = async (signal: AbortSignal) => {
    for await (const change of backend.watch({ signal })) {
      deps.recorder.watchEvent(`${backend.name}-watch`);
      await look(change, signal);
    }
  };

  return {
    async run(signal) {
      await Promise.all([
        repeat("watch", 1_000, signal, () => watch(signal)),
        repeat("list", times.listMs, signal, () => listAll(signal)),
        repeat("tick", times.tickMs, signal, tick),
      ]);
    },
  };
}

function inTheMaking(entry: Entry): boolean {
  const { kind } = entry.state;
  return kind === "starting" || kind === "ready";
}

function isLive(entry: Entry): boolean {
  const { state } = entry;
  switch (state.kind) {
    case "starting":
    case "ready":
      return true;
    case "claimed":
    case "running":
    case "terminal":
      return state.presence === "alive" || state.presence === "ended";
    case "stored":
    case "parked":
    case "admitted":
    case "settling":
    case "cleaned":
      return false;
    default:
      return state satisfies never;
  }
}
