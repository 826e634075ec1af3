import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import { create } from "../proto/runtime.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import { whyEnding } from "./deletion.ts";
import { type Entry, takeTurn } from "./entry.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { ExecutorName } from "./model/ids.ts";
import type { StepSnapshot } from "./model/record.ts";
import { noteMoment } from "./views/moments.ts";
import type { ClaimAnswer, ExecutorEvents } from "./offers.ts";
import type { RecordWriter } from "./record_writer.ts";
import { createEndKeeper } from "./reported_end.ts";
import { fromWireResult, isGone } from "./settle.ts";

/** {@link ExecutorEvents}, until they are closed. */
export interface Claims extends ExecutorEvents {
  /** Grants no claim any more; resolves when none is under way. */
  close(): Promise<void>;
}

/**
 * The controller's half of the facade: claims, and what executors report.
 *
 * A claim goes through in this order, or not at all: waiting heartbeats stopped and awaited, Gitea
 * asked whether the task still runs, the log's ack read, the claim recorded by compare-and-set, the
 * state moved on, the task answered. Whoever comes second finds `claimedBy`.
 */
export function createClaims(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  readonly gitea: Gitea;
  readonly ledger: Ledger;
  readonly writer: RecordWriter;
  /** Ends the heartbeats of a waiting task; resolves when none is under way. */
  stopWaiting(entry: Entry): Promise<void>;
  /** The backend's word that no executor could run the job any more; false when it does not answer. */
  isGone(entry: Entry, signal: AbortSignal): Promise<boolean>;
  /** See {@link ExecutorEvents.shown}. */
  shown: ExecutorEvents["shown"];
  guard(): void;
}): Claims {
  const { clock, ledger, writer, gitea } = deps;
  const logger = deps.logger.child({ component: "worker" });
  let closed = false;

  const ended = (entry: Entry, detail: string) =>
    ledger.dispatch(entry.info.id, { kind: "cancelled", detail });

  /** Gitea's view of the task: its log position, or null when the task has ended there. */
  const lookAtGitea = async (entry: Entry, signal: AbortSignal): Promise<bigint | null> => {
    const taskId = BigInt(entry.info.taskId);
    try {
      const [beat, log] = await Promise.all([
        gitea.updateTask({ state: create(TaskStateSchema, { id: taskId }) }, { signal }),
        gitea.updateLog({ taskId, index: 0n, rows: [], noMore: false }, { signal }),
      ]);
      const result = fromWireResult(beat.state?.result ?? 0);
      if (result === null) return log.ackIndex;
      ended(entry, `Gitea says the job has ended: ${result}`);
    } catch (error) {
      if (!(error instanceof GiteaError) || !(isGone(error) || error.code === "log_sealed")) {
        throw error;
      }
      ended(entry, `Gitea does not know the job any more: ${error.message}`);
    }
    return null;
  };

  /** Nothing is made or deleted for this assignment while its claim is being recorded. */
  const record = async (entry: Entry, gate: string, signal: AbortSignal): Promise<ClaimAnswer> => {
    const release = await takeTurn(entry);
    try {
      await deps.stopWaiting(entry);
      const ack = await lookAtGitea(entry, signal);
      if (ack === null) return { kind: "refused", why: "the job has ended at Gitea" };
      // Once recorded the job is this executor's: one that died just now must not take it along.
      if (await deps.isGone(entry, signal)) {
        ledger.dispatch(entry.info.id, { kind: "look_again" });
        return { kind: "wait" };
      }
      const { state } = entry;
      if (state.kind !== "ready") return { kind: "wait" };
      deps.guard();
      const claim = { executor: state.executor, gate, at: clock.now() };
      const { claimedBy, logOffset } = await writer.change(
        entry,
        (r) => r.claimedBy !== null ? r : { ...r, claimedBy: claim, logOffset: Number(ack) },
        signal,
      );
      // The record decides, also when it holds an earlier claim whose writing seemed to fail.
      if (claimedBy !== null) follow(entry, claimedBy.executor);
      if (claimedBy?.gate !== gate) return REFUSED;
      return entry.state.kind === "claimed"
        ? { kind: "granted", logOffset }
        : { kind: "refused", why: "the job ended while it was being handed over" };
    } finally {
      release();
    }
  };

  const follow = (entry: Entry, executor: ExecutorName) => {
    const { id } = entry.info;
    ledger.dispatch(id, { kind: "claim_recorded", executor });
    if (entry.executor === null) ledger.dispatch(id, { kind: "executor_gone" });
    else if (entry.executor.ended !== null) ledger.dispatch(id, { kind: "executor_ended" });
  };

  const again = (entry: Entry, gate: string): ClaimAnswer => {
    const claimed = entry.record?.value;
    return claimed?.claimedBy?.gate === gate
      ? { kind: "granted", logOffset: claimed.logOffset }
      : REFUSED;
  };

  const seen = (entry: Entry) => {
    entry.heartbeatAt = clock.now();
    noteMoment(entry.moments, "first_call", entry.heartbeatAt);
    entry.lastSeen = clock.monotonic();
  };

  /** Resolves at the next change of the entry's state, or at the end of the caller's patience. */
  const nextChange = (entry: Entry, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const any = AbortSignal.any([entry.phase.signal, signal]);
      if (any.aborted) return resolve();
      any.addEventListener("abort", () => resolve(), { once: true });
    });

  /**
   * Begins to record a claim. Once begun it is finished, whether or not the caller still listens; who
   * asks again is told what became of it.
   */
  const begin = (entry: Entry, gate: string): Promise<ClaimAnswer> => {
    const attempt = record(entry, gate, deps.tasks.signal).catch((error): ClaimAnswer => {
      if (!deps.tasks.signal.aborted) {
        const { id } = entry.info;
        logger.error("assignment processing error", { assignment: id, action: "claim", error });
      }
      return { kind: "wait" };
    }).finally(() => entry.claiming = null);
    entry.claiming = attempt;
    deps.tasks.spawn("claim", async () => void await attempt);
    return attempt;
  };

  const claim: ExecutorEvents["claim"] = async (id, gate, signal) => {
    while (!signal.aborted && !closed) {
      const entry = ledger.get(id);
      if (entry === undefined) return WAIT;
      seen(entry); // Who asks lives.
      switch (entry.state.kind) {
        case "ready":
          if (entry.claiming === null) return await orAbort(begin(entry, gate), signal);
          await orAbort(entry.claiming, signal);
          break;
        case "claimed":
        case "running":
          return again(entry, gate);
        case "stored":
        case "parked":
        case "admitted":
        case "starting":
          await nextChange(entry, signal);
          break;
        case "settling":
        case "terminal":
        case "cleaned":
          return { kind: "refused", why: "the job has ended" };
        default:
          return entry.state satisfies never;
      }
    }
    return WAIT;
  };

  const rememberSteps = (entry: Entry, steps: readonly StepSnapshot[]) => {
    const known = entry.record?.value.steps;
    if (known === undefined || !hasProgress(known, steps)) return;
    // After the end nobody reads them, and the record may be gone before the write is due.
    const { kind } = entry.state;
    if (kind !== "claimed" && kind !== "running") return;
    deps.tasks.spawn("remember steps", async (signal) => {
      deps.guard();
      await writer.change(entry, (r) => ({ ...r, steps }), signal);
    });
  };

  return {
    claim,
    async close() {
      closed = true;
      await Promise.all([...ledger.entries()].map((entry) => entry.claiming));
    },
    updated(id) {
      const entry = ledger.get(id);
      if (entry === undefined) return;
      seen(entry);
      entry.lastReport = clock.monotonic();
      ledger.dispatch(id, { kind: "held" });
    },
    rowsForwarded(id) {
      const entry = ledger.get(id);
      if (entry !== undefined) noteMoment(entry.moments, "first_row", clock.now());
    },
    stepsForwarded(id, steps) {
      const entry = ledger.get(id);
      if (entry === undefined) return;
      entry.lastReport = clock.monotonic();
      rememberSteps(entry, steps);
    },
    endReported: createEndKeeper(deps),
    endedAtGitea(id) {
      const entry = ledger.get(id);
      if (entry === undefined) return;
      entry.lastReport = clock.monotonic();
      entry.toldToStop ??= clock.monotonic();
    },
    finalAccepted(id, result) {
      const entry = ledger.get(id);
      // The runner has failed the job because of that, and cannot know.
      if (entry !== undefined && entry.deletion !== null && result === "failure") {
        entry.reason = { code: "executor_lost", detail: entry.deletion, since: clock.now() };
      }
      ledger.dispatch(id, { kind: "final_accepted", result });
    },
    shown: deps.shown,
    heartbeat(id, beat) {
      const entry = ledger.get(id);
      if (entry === undefined) return;
      seen(entry);
      if (beat.holdsTask) ledger.dispatch(id, { kind: "held" });
      else ledger.touch(entry);
    },
    whyDeleted: (id) => ledger.get(id)?.deletion ?? null,
    terminating(id, why) {
      const entry = ledger.get(id);
      if (entry === undefined) return;
      entry.terminating = why;
      logger.warn("executor is being terminated", { assignment: id, detail: why });
      ledger.touch(entry);
    },
    exited(id, exit) {
      const entry = ledger.get(id);
      if (entry === undefined) return;
      logger.info("executor exits", { assignment: id, code: exit.code, delivered: exit.delivered });
      if (!exit.delivered) {
        const why = whyEnding(entry) ?? exit.detail;
        const detail = `the executor ended without a result (exit code ${exit.code}: ${why})`;
        ledger.dispatch(id, { kind: "lost", code: "executor_lost", detail });
      }
      ledger.dispatch(id, { kind: "executor_leaving" });
    },
  };
}

const WAIT: ClaimAnswer = { kind: "wait" };
const REFUSED: ClaimAnswer = { kind: "refused", why: "another gate has claimed this job" };

/** The answer, or `wait` when the caller's patience ends first. */
function orAbort(answer: Promise<ClaimAnswer>, signal: AbortSignal): Promise<ClaimAnswer> {
  const { promise, resolve } = Promise.withResolvers<ClaimAnswer>();
  const onAbort = () => resolve(WAIT);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  answer.then(resolve).finally(() => signal.removeEventListener("abort", onAbort));
  return promise;
}

/** Log lengths move all the time; a write is worth it when a step started or ended. */
function hasProgress(known: readonly StepSnapshot[], steps: readonly StepSnapshot[]): boolean {
  return known.length !== steps.length || steps.some((step, i) => {
    const before = known[i];
    return before === undefined || before.result !== step.result ||
      (before.startedAt > 0) !== (step.startedAt > 0);
  });
}
