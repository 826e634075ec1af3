import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { type Backoff, retryForever } from "../lib/retry.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import type { Entry } from "./entry.ts";
import type { Gitea } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { BackendName } from "./model/ids.ts";
import type { Effect, Event } from "./model/state.ts";
import type { Offers } from "./offers.ts";
import type { RecordWriter } from "./record_writer.ts";
import { settleTask } from "./settle.ts";
import type { Outcome, Worker } from "./worker.ts";

/** An effect that the shell has to carry out. */
export type Deed = Exclude<Effect, { kind: "journal" }>;

/** Waits between tries of an effect. */
const BACKOFF: Backoff = { firstMs: 250, maxMs: 15_000 };

/**
 * Carries out what {@link decide} asks for. Each effect runs in the task group, is retried until it
 * holds, and answers with an event. Effects on one assignment's executor run one after the other.
 */
export function createEffects(deps: {
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  readonly gitea: Gitea;
  readonly offers: Offers;
  readonly writer: RecordWriter;
  readonly claimTimeoutMs: number;
  worker(backend: BackendName): Worker;
  ledger(): Ledger;
  guard(): void;
}): { run(entry: Entry, effect: Deed): void; recheck(entry: Entry): void } {
  const { clock, tasks, writer } = deps;
  const logger = deps.logger.child({ component: "worker" });

  const happen = (entry: Entry, event: Event) => deps.ledger().dispatch(entry.info.id, event);

  const complain = (entry: Entry, error: unknown, what: string) =>
    logger.error("assignment processing error", {
      assignment: entry.info.id,
      backend: entry.info.backend,
      action: what,
      error,
    });

  /** Repeats an action until it holds, then lets `event` happen. */
  const persist = (
    entry: Entry,
    what: string,
    action: (signal: AbortSignal) => Promise<Event | null>,
  ) =>
    tasks.spawn(what, async (signal) => {
      const event = await retryForever(() => {
        deps.guard();
        return action(signal);
      }, {
        clock,
        random: deps.random,
        backoff: BACKOFF,
        signal,
        onError: (error) => complain(entry, error, what),
      });
      if (event !== null) happen(entry, event);
    });

  /** Like {@link persist}, after all earlier work on this assignment's executor. */
  const persistInTurn = (
    entry: Entry,
    what: string,
    action: (signal: AbortSignal) => Promise<Event | null>,
  ) => {
    const before = entry.work;
    const { promise, resolve } = Promise.withResolvers<void>();
    entry.work = promise;
    persist(entry, what, async (signal) => {
      await before;
      const event = await action(signal);
      resolve();
      return event;
    });
  };

  const accept = (entry: Entry, afterMs: number) => {
    entry.attempt?.abort(new DOMException("Superseded", "AbortError"));
    const attempt = new AbortController();
    entry.attempt = attempt;
    const before = entry.work;
    const { promise, resolve } = Promise.withResolvers<void>();
    entry.work = promise;
    tasks.spawn("accept", async (groupSignal) => {
      const signal = AbortSignal.any([groupSignal, attempt.signal]);
      try {
        if (afterMs > 0) {
          entry.nextTryAt = clock.now() + afterMs;
          await clock.sleep(afterMs, signal);
        }
        entry.nextTryAt = null;
        await before;
        // A claim that is being recorded right now comes first: from then on nothing is made again.
        await entry.claiming?.catch(() => {});
        signal.throwIfAborted();
        if (!mayBeMade(entry)) return;
        deps.guard();
        const worker = deps.worker(entry.info.backend);
        const outcome = await worker.accept(entry, (executor) => {
          entry.executor = executor;
          happen(entry, { kind: "executor_seen", executor: executor.name });
        }, signal);
        finish(entry, outcome);
      } catch (error) {
        if (signal.aborted) return;
        complain(entry, error, "accept");
        const detail = error instanceof Error ? error.message : String(error);
        happen(entry, {
          kind: "backend_failed",
          code: "backend_unavailable",
          detail,
          executor: "possible",
        });
      } finally {
        if (entry.attempt === attempt) entry.attempt = null;
        resolve();
      }
    });
  };

  const finish = (entry: Entry, outcome: Outcome) => {
    switch (outcome.kind) {
      case "ready":
        entry.executor = outcome.executor;
        return happen(entry, { kind: "ready", executor: outcome.executor.name });
      case "executor_failed":
        entry.executor = null;
        entry.lastLines = outcome.lastLines;
        return happen(entry, outcome);
      case "not_ready":
      case "backend_failed":
        return happen(entry, outcome);
      default:
        return outcome satisfies never;
    }
  };

  const awaitClaim = (entry: Entry) => {
    const phase = entry.phase.signal;
    tasks.spawn("await claim", async (groupSignal) => {
      try {
        await clock.sleep(deps.claimTimeoutMs, AbortSignal.any([groupSignal, phase]));
      } catch {
        return; // Claimed, cancelled or stopped.
      }
      // A claim that is being recorded right now counts as in time.
      await entry.claiming;
      happen(entry, { kind: "claim_timed_out" });
    });
  };

  const run = (entry: Entry, effect: Deed): void => {
    switch (effect.kind) {
      case "accept":
        return accept(entry, effect.afterMs);
      case "await_claim":
        return awaitClaim(entry);
      case "ack":
      case "terminate":
        return persist(entry, `${effect.kind} assignment ${entry.info.id}`, async (signal) => {
          const message = entry.message;
          if (message !== null) {
            if (effect.kind === "ack") await message.ack({ signal });
            else await message.terminate(effect.reason, { signal });
          }
          entry.message = null;
          return { kind: "message_gone" };
        });
      case "nak":
        entry.nextTryAt = clock.now() + effect.delayMs;
        entry.message?.nak(effect.delayMs);
        entry.message = null;
        return;
      case "withdraw":
        return deps.offers.remove(entry.info.id);
      case "settle":
        return persist(entry, "settle", async (signal) => {
          const result = await settleTask(
            {
              taskId: entry.info.taskId,
              result: effect.result,
              text: `gitea-dynamic-runner: ${effect.detail}`,
              steps: entry.record?.value.steps ?? [],
            },
            { gitea: deps.gitea, clock },
            signal,
          );
          return result === null ? { kind: "settled" } : { kind: "settled", result };
        });
      case "mark":
        return persistInTurn(entry, "mark", async (signal) => {
          const { executor } = entry;
          const result = entry.result ?? "failure";
          await writer.change(
            entry,
            (r) => r.terminal !== null ? r : { ...r, terminal: { result, at: clock.now() } },
            signal,
          );
          const { backend } = deps.worker(entry.info.backend);
          if (executor !== null) await backend.markTerminal(executor, { signal });
          return { kind: "marked" };
        });
      case "delete_executor":
        return persistInTurn(entry, "delete executor", async (signal) => {
          await deps.worker(entry.info.backend).remove(entry, signal);
          return { kind: "executor_gone" };
        });
      case "finish":
        return persistInTurn(entry, "finish", async (signal) => {
          await writer.remove(entry, signal);
          deps.offers.remove(entry.info.id);
          return { kind: "record_deleted" };
        });
      default:
        return effect satisfies never;
    }
  };

  return {
    run,
    /** Looks at an executor in the making again, now. */
    recheck: (entry) => {
      if (!mayBeMade(entry)) return;
      // A ready one is left to its claim, unless it has ended and will never ask.
      const waits = entry.state.kind === "ready" && entry.executor?.ended === null;
      const begun = entry.state.kind === "ready" && entry.attempt !== null;
      if (!waits && !begun) accept(entry, 0);
    },
  };
}

function mayBeMade(entry: Entry): boolean {
  const { kind } = entry.state;
  return kind === "admitted" || kind === "starting" || kind === "ready";
}
