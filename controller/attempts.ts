import type { Clock } from "../lib/clock.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import type { Attempt, Entry } from "./entry.ts";
import { takeTurn } from "./entry.ts";
import type { BackendName } from "./model/ids.ts";
import type { Event } from "./model/state.ts";
import type { Outcome, Worker } from "./worker.ts";

/** Makes executors, one round at a time and assignment, until each is ready to claim. */
export interface Attempts {
  /**
   * Asks the worker after `afterMs`. Replaces a round that still waits; one that works is finished
   * first, and what it finds is looked at again.
   */
  accept(entry: Entry, afterMs: number): void;
  /** Lets `claim_timed_out` happen unless the state changes within the claim time-out. */
  awaitClaim(entry: Entry): void;
}

/** Makes {@link Attempts}. Outcomes come back through `happen`; nothing is thrown. */
export function createAttempts(deps: {
  readonly clock: Clock;
  readonly tasks: TaskGroup;
  readonly claimTimeoutMs: number;
  worker(backend: BackendName): Worker;
  happen(entry: Entry, event: Event): void;
  complain(entry: Entry, error: unknown, action: string): void;
  /** Lets the backend say why the executor does not ask for its job yet. */
  explain(entry: Entry): void;
  guard(): void;
}): Attempts {
  const { clock, tasks, happen } = deps;

  const round = async (entry: Entry, attempt: Attempt, signal: AbortSignal) => {
    const release = await takeTurn(entry);
    try {
      signal.throwIfAborted();
      if (!mayBeMade(entry)) return;
      attempt.working = true;
      deps.guard();
      const worker = deps.worker(entry.info.backend);
      const outcome = await worker.accept(entry, (executor) => {
        entry.executor = executor;
        happen(entry, { kind: "executor_seen", executor: executor.name });
      }, signal);
      if (entry.attempt === attempt) entry.attempt = null;
      conclude(entry, outcome);
      const standing = outcome.kind === "ready" || outcome.kind === "not_ready";
      if (attempt.again && standing) happen(entry, { kind: "look_again" });
    } finally {
      release();
    }
  };

  const conclude = (entry: Entry, outcome: Outcome) => {
    switch (outcome.kind) {
      case "ready":
        entry.executor = outcome.executor;
        happen(entry, { kind: "ready", executor: outcome.executor.name });
        return deps.explain(entry);
      case "executor_failed":
        entry.executor = null;
        entry.failed = outcome.detail;
        entry.lastLines = outcome.lastLines;
        return happen(entry, outcome);
      case "backend_failed":
        if (outcome.executor === "none") entry.executor = null;
        return happen(entry, outcome);
      case "not_ready":
        return happen(entry, outcome);
      case "claimed":
        // A claim was recorded whose answer we never got; its executor is not there any more.
        entry.executor = null;
        happen(entry, { kind: "claim_recorded", executor: outcome.executor });
        return happen(entry, { kind: "executor_gone" });
      default:
        return outcome satisfies never;
    }
  };

  return {
    accept(entry, afterMs) {
      if (entry.attempt?.working) {
        entry.attempt.again = true;
        return;
      }
      entry.attempt?.controller.abort(new DOMException("Superseded", "AbortError"));
      const attempt: Attempt = { controller: new AbortController(), working: false, again: false };
      entry.attempt = attempt;
      tasks.spawn("accept", async (groupSignal) => {
        const signal = AbortSignal.any([groupSignal, attempt.controller.signal]);
        try {
          if (afterMs > 0) {
            entry.nextTryAt = clock.now() + afterMs;
            await clock.sleep(afterMs, signal);
            entry.nextTryAt = null;
          }
          await round(entry, attempt, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (entry.attempt === attempt) entry.attempt = null;
          deps.complain(entry, error, "accept");
          const detail = error instanceof Error ? error.message : String(error);
          happen(entry, {
            kind: "backend_failed",
            code: "backend_unavailable",
            detail,
            executor: "possible",
          });
        } finally {
          if (entry.attempt === attempt) entry.attempt = null;
        }
      });
    },
    awaitClaim(entry) {
      const phase = entry.phase.signal;
      tasks.spawn("await claim", async (groupSignal) => {
        try {
          await clock.sleep(deps.claimTimeoutMs, AbortSignal.any([groupSignal, phase]));
        } catch {
          return; // Claimed, cancelled or stopped.
        }
        // A claim that is being recorded right now counts as in time.
        await entry.claiming?.catch(() => {});
        if (phase.aborted) return;
        entry.overdue = true;
        happen(entry, { kind: "claim_timed_out" });
      });
    },
  };
}

/** Before the claim an executor may be made, later never again. */
function mayBeMade(entry: Entry): boolean {
  const { kind } = entry.state;
  return kind === "admitted" || kind === "starting" || kind === "ready";
}
