import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { type Backoff, retryForever } from "../lib/retry.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import { createAttempts } from "./attempts.ts";
import { type Entry, takeTurn } from "./entry.ts";
import type { Gitea } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { BackendName } from "./model/ids.ts";
import type { Effect, Event } from "./model/state.ts";
import type { Offers } from "./offers.ts";
import type { AssignmentQueue } from "./queue.ts";
import type { RecordWriter } from "./record_writer.ts";
import { removeExecutor } from "./remove_executor.ts";
import { settlementOfLost } from "./reported_end.ts";
import { type Settlement, settleTask } from "./settle.ts";
import type { Worker } from "./worker.ts";

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
  readonly queue: Pick<AssignmentQueue, "remove">;
  readonly offers: Offers;
  readonly writer: RecordWriter;
  readonly claimTimeoutMs: number;
  worker(backend: BackendName): Worker;
  ledger(): Ledger;
  guard(): void;
}): { run(entry: Entry, effect: Deed): void } {
  const { clock, tasks, writer } = deps;
  const logger = deps.logger.child({ component: "worker" });

  const happen = (entry: Entry, event: Event) => deps.ledger().dispatch(entry.info.id, event);

  const complain = (entry: Entry, error: unknown, action: string) =>
    logger.error("assignment processing error", {
      assignment: entry.info.id,
      backend: entry.info.backend,
      action,
      error,
    });

  const attempts = createAttempts({
    ...deps,
    happen,
    complain,
    explain: (entry) => deps.ledger().explain(entry),
  });

  /** Repeats an action until it holds, then lets its event happen. */
  const persist = (
    entry: Entry,
    what: string,
    action: (signal: AbortSignal) => Promise<Event | null>,
  ) => tasks.spawn(what, (signal) => repeat(entry, what, action, signal));

  /** Like {@link persist}, after all earlier work on this assignment's executor. */
  const persistInTurn = (
    entry: Entry,
    what: string,
    action: (signal: AbortSignal) => Promise<Event | null>,
  ) =>
    tasks.spawn(what, async (signal) => {
      const release = await takeTurn(entry);
      try {
        await repeat(entry, what, action, signal);
      } finally {
        release();
      }
    });

  const repeat = async (
    entry: Entry,
    what: string,
    action: (signal: AbortSignal) => Promise<Event | null>,
    signal: AbortSignal,
  ) => {
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
  };

  /** Ends every message of the assignment: the one in hand, or where it stands in the stream. */
  const endMessages = async (entry: Entry, reason: string | null, signal: AbortSignal) => {
    const { message, others, sequence } = entry;
    for (const each of message === null ? others : [...others, message]) {
      if (reason === null) await each.ack({ signal });
      else await each.terminate(reason, { signal });
    }
    if (message === null && sequence !== null) await deps.queue.remove(sequence, { signal });
    entry.others = entry.others.filter((each) => !others.includes(each));
    if (entry.message === message) entry.message = null;
  };

  const mark = async (entry: Entry, signal: AbortSignal) => {
    const { executor } = entry;
    const result = entry.result ?? "failure";
    await writer.change(
      entry,
      (r) => r.terminal !== null ? r : { ...r, terminal: { result, at: clock.now() } },
      signal,
    );
    const { backend } = deps.worker(entry.info.backend);
    if (executor !== null) await backend.markTerminal(executor, { signal });
  };

  const run = (entry: Entry, effect: Deed): void => {
    switch (effect.kind) {
      case "accept":
        return attempts.accept(entry, effect.afterMs);
      case "await_claim":
        return attempts.awaitClaim(entry);
      case "ack":
      case "terminate":
        return persist(entry, `${effect.kind} assignment ${entry.info.id}`, async (signal) => {
          await endMessages(entry, effect.kind === "ack" ? null : effect.reason, signal);
          return { kind: "message_gone" };
        });
      case "nak":
        entry.nextTryAt = clock.now() + effect.delayMs;
        entry.message?.nak(effect.delayMs);
        entry.message = null;
        return;
      case "withdraw":
        return deps.offers.remove(entry.info.id);
      case "remember_parked":
        return persist(entry, "remember parking", async (signal) => {
          const { until } = effect;
          if (entry.record !== null) {
            await writer.change(entry, (r) => ({ ...r, parkedUntil: until }), signal);
          }
          return null;
        });
      case "settle":
        return persist(entry, "settle", async (signal) => {
          const { taskId } = entry.info;
          const record = entry.record?.value;
          const text = `gitea-dynamic-runner: ${effect.detail}`;
          let end: Omit<Settlement, "taskId"> = {
            result: effect.result,
            text,
            steps: record?.steps ?? [],
          };
          if (effect.code === "executor_lost") {
            // It may have told the end before it was lost: then that is the truth.
            const told = await deps.offers.conclude(entry.info.id, signal);
            if (told !== null) return { kind: "settled", result: told };
            end = settlementOfLost(record, end);
          }
          const result = await settleTask({ taskId, ...end }, { gitea: deps.gitea, clock }, signal);
          return result === null ? { kind: "settled" } : { kind: "settled", result };
        });
      case "mark":
        return persistInTurn(entry, "mark", async (signal) => {
          await mark(entry, signal);
          return { kind: "marked" };
        });
      case "delete_executor":
        if (entry.deleting) return;
        entry.deleting = true;
        return persistInTurn(entry, "delete executor", async (signal) => {
          const worker = deps.worker(entry.info.backend);
          await removeExecutor(worker, entry, { clock, guard: deps.guard }, signal);
          entry.deleting = false;
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

  return { run };
}
