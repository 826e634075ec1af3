import { aborted, onAbort } from "../lib/abortable.ts";
import type { Logger } from "../lib/logger.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import { type ClaimRecorderDeps, createClaimRecorder, REFUSED } from "./claim_recorder.ts";
import { whyEnding } from "./deletion.ts";
import type { Entry } from "./entry.ts";
import type { StepSnapshot } from "./model/record.ts";
import { noteMoment } from "./views/moments.ts";
import type { ClaimAnswer, ExecutorEvents } from "./offers.ts";
import { createEndKeeper } from "./reported_end.ts";

/** {@link ExecutorEvents}, until they are closed. */
export interface Claims extends ExecutorEvents {
  /** Grants no claim any more; resolves when none is under way. */
  close(): Promise<void>;
}

/** The controller's half of the facade: claims, and what executors report. */
export function createClaims(
  deps: ClaimRecorderDeps & {
    readonly logger: Logger;
    readonly tasks: TaskGroup;
    /** See {@link ExecutorEvents.shown}. */
    shown: ExecutorEvents["shown"];
  },
): Claims {
  const { clock, ledger, writer } = deps;
  const logger = deps.logger.child({ component: "worker" });
  const record = createClaimRecorder(deps);
  let closed = false;

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
    aborted(AbortSignal.any([entry.phase.signal, signal]));

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

/** The answer, or `wait` when the caller's patience ends first. */
async function orAbort(
  answer: Promise<ClaimAnswer>,
  signal: AbortSignal,
): Promise<ClaimAnswer> {
  const { promise, resolve } = Promise.withResolvers<ClaimAnswer>();
  using _listening = onAbort(signal, () => resolve(WAIT));
  return await Promise.race([promise, answer]);
}

/** Log lengths move all the time; a write is worth it when a step started or ended. */
function hasProgress(known: readonly StepSnapshot[], steps: readonly StepSnapshot[]): boolean {
  return known.length !== steps.length || steps.some((step, i) => {
    const before = known[i];
    return before === undefined || before.result !== step.result ||
      (before.startedAt > 0) !== (step.startedAt > 0);
  });
}
