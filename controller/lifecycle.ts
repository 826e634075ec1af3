import type { Logger } from "../lib/logger.ts";
import type { Executor, ExecutorChange } from "./backend.ts";
import { noteDeletion } from "./deletion.ts";
import type { Entry } from "./entry.ts";
import type { AssignmentId, ExecutorName } from "./model/ids.ts";
import { isBeforeClaim } from "./model/state.ts";
import type { Recorder } from "./recorder.ts";
import type { Strangers } from "./strangers.ts";
import { createTimeRules, type TimeRulesDeps } from "./time_rules.ts";
import type { Worker } from "./worker.ts";

/** Times of the lifecycle rules, milliseconds. */
export interface LifecycleTimes {
  /** Between full lists. */
  readonly listMs: number;
  /** Between looks at rules that depend on time. */
  readonly tickMs: number;
  /** Silence, beside the backend's word, that proves a claimed executor lost. */
  readonly silenceMs: number;
  /** A terminal executor that lives longer than this is deleted. */
  readonly lingerMs: number;
  /** A runner that was told to stop, and has not reported for so long, will not. */
  readonly deafMs: number;
}

/** In production; the table of docs/reliability.md follows from them. */
export const DEFAULT_LIFECYCLE_TIMES: LifecycleTimes = {
  listMs: 30_000,
  tickMs: 1_000,
  silenceMs: 60_000,
  lingerMs: 60_000,
  deafMs: 120_000,
};

/**
 * Keeps what the ledger believes and what the backend holds the same. Level-based: a change only
 * says "look at this one"; a full list repairs what changes missed, and what a list says is checked
 * before anything is decided on it, because it is old when it arrives.
 */
export function createLifecycle(
  deps: Omit<TimeRulesDeps, "backend"> & {
    readonly worker: Worker;
    readonly logger: Logger;
    readonly recorder: Recorder;
    readonly strangers: Strangers;
    /** Which assignment an executor of ours is named after. */
    assignmentOf(name: ExecutorName): AssignmentId | undefined;
    /** The identity of this one is not bound, by the backend's word; called with each list that says so. */
    rebind(entry: Entry): void;
  },
): { run(signal: AbortSignal): Promise<void> } {
  const { ledger, clock, times, worker, strangers } = deps;
  const { backend } = worker;
  const tick = createTimeRules({ ...deps, backend });
  const logger = deps.logger.child({ component: "lifecycle", backend: backend.name });
  const inState = (...kinds: readonly Entry["state"]["kind"][]) =>
    kinds.flatMap((kind) => [...ledger.inState(backend.name, kind)]);

  const liveOf = (name: ExecutorName) => {
    const id = deps.assignmentOf(name);
    const entry = id === undefined ? undefined : ledger.get(id);
    return entry !== undefined && entry.state.kind !== "cleaned" ? entry : undefined;
  };

  const look = async ({ name, executor }: ExecutorChange, signal: AbortSignal) => {
    const live = liveOf(name);
    if (live?.unproven && (executor === null || executor.ended !== null)) unheard(live);
    if (executor === null) {
      strangers.forget(name);
      return live === undefined || live.unproven ? undefined : gone(live);
    }
    if (live === undefined || live.unproven) return await strangers.meet(executor, signal);
    if (!await worker.isOurs(live, executor)) return await usurped(live, executor, signal);
    strangers.forget(name);
    live.executor = executor;
    if (noteDeletion(live, executor)) {
      logger.warn("executor is deleted by somebody else", {
        assignment: live.info.id,
        detail: live.deletion,
      });
    }
    if (executor.ended !== null) ended(live, executor);
    else if (executor.identityBound === false && ledger.age(live).inStateMs >= SETTLED_MS) {
      deps.rebind(live);
    }
    ledger.explain(live);
    ledger.touch(live);
  };

  /**
   * News may be late, and of an earlier executor of the same name: that one is gone counts only when
   * nothing stands under its name now, because nothing takes it back.
   */
  const hear = async ({ name, executor }: ExecutorChange, signal: AbortSignal) => {
    const now = executor ?? (liveOf(name) && await backend.find(name, { signal }));
    await look({ name, executor: now ?? null }, signal);
  };

  /** One that cannot be looked at never stops the others; the next list has it again. */
  const safely = async (
    take: typeof look,
    change: ExecutorChange,
    signal: AbortSignal,
  ) => {
    try {
      await take(change, signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.error("backend lifecycle error", { action: "look", executor: change.name, error });
    }
  };

  const gone = (entry: Entry) => {
    if (!isBeforeClaim(entry.state)) {
      return ledger.dispatch(entry.info.id, { kind: "executor_gone" });
    }
    if (entry.executor === null) return; // Not made yet, or replaced already.
    entry.executor = null;
    ledger.dispatch(entry.info.id, { kind: "look_again" });
  };

  /** It may have begun the job, so nobody may begin it again. */
  const unheard = (entry: Entry) =>
    ledger.dispatch(entry.info.id, { kind: "gave_up", code: "executor_lost", detail: UNHEARD });

  const ended = (entry: Entry, executor: Executor) => {
    if (executor.ended !== null) entry.lastLines = executor.ended.lastLines;
    const { id } = entry.info;
    if (!isBeforeClaim(entry.state)) ledger.dispatch(id, { kind: "executor_ended" });
    // One that is being replaced already is waited for by that round.
    else if (entry.ending === null) ledger.dispatch(id, { kind: "look_again" });
  };

  /** Something else stands under the name of the assignment's executor: never adopted. */
  const usurped = async (entry: Entry, executor: Executor, signal: AbortSignal) => {
    const now = await backend.find(executor.name, { signal });
    if (now?.uid !== executor.uid || await worker.isOurs(entry, now)) return;
    if (await worker.isSpare(entry, now)) {
      await backend.delete(now, { signal });
    } else {
      // Without a record nothing can be proven, and it may well be ours.
      const ownership = entry.record === null ? "unknown" : "foreign";
      strangers.show({ executor: now, ownership, why: `stands in the way of ${entry.info.id}` });
    }
    if (entry.executor !== null) gone(entry);
  };

  /** Everything the backend holds, and everything we believe it holds. */
  const listAll = async (signal: AbortSignal) => {
    const executors = await backend.list({ signal });
    await backend.tidy?.({ signal });
    deps.recorder.watchEvent(`${backend.name}-list`);
    const names = new Set(executors.map((e) => e.name));
    for (const executor of executors) await safely(look, { name: executor.name, executor }, signal);
    strangers.keepOnly(names);
    const kinds = ["starting", "ready", "claimed", "running", "settling", "terminal"] as const;
    const unproven = inState("stored").filter((entry) => entry.unproven);
    const believed = [
      ...inState(...kinds).map(({ executor }) => executor?.name),
      ...unproven.map(({ info }) => worker.nameOf(info)),
    ];
    for (const name of believed) {
      if (name === undefined || names.has(name)) continue;
      await safely(hear, { name, executor: null }, signal);
    }
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
      await safely(hear, change, signal);
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

/** A list is older than a binding that was made meanwhile. */
const SETTLED_MS = 5_000;
const UNHEARD = "its executor has ended, and its record is lost: nobody can tell whether it has " +
  "begun the job, so it is not begun again; run it again if that does no harm";
