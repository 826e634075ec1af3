import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import { create } from "../proto/runtime.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Entry } from "./entry.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { Result } from "./model/reason.ts";
import { fromWireResult, isGone, openStep } from "./settle.ts";

/**
 * Asks Gitea about a job whose executor lives and whose runner says nothing. It may have ended there
 * long ago: by Gitea's own time-outs, or by a report that came just before we were restarted. An
 * answer that it runs changes nothing, but counts as a word from its runner at Gitea: so nobody is
 * asked about before Gitea itself must have decided, or else once after a restart.
 */
export interface Inquiry {
  /** Asks unless it is too early, or asked already; lets `final_accepted` happen if the job has ended. */
  consider(entry: Entry): void;
}

/** Makes an {@link Inquiry}. */
export function createInquiry(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  readonly gitea: Gitea;
  readonly ledger: Ledger;
  /** Silence after which a job that an earlier process handed over is asked about, once. */
  readonly restoredMs: number;
  /** Silence after which Gitea takes a job for dead. */
  readonly zombieTimeoutMs: number;
  guard(): void;
}): Inquiry {
  const { clock, gitea } = deps;
  const begun = new WeakMap<Entry, number>();
  const asked = new WeakMap<Entry, number>();
  let underWay = 0;

  const ask = async (entry: Entry, signal: AbortSignal) => {
    const ended = (result: Result) =>
      deps.ledger.dispatch(entry.info.id, { kind: "final_accepted", result });
    const steps = (entry.record?.value.steps ?? []).map(openStep);
    const state = create(TaskStateSchema, { id: BigInt(entry.info.taskId), steps });
    try {
      deps.guard();
      const answer = await gitea.updateTask({ state }, { signal });
      const result = fromWireResult(answer.state?.result ?? 0);
      if (result !== null) ended(result);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof GiteaError && isGone(error)) return ended("cancelled");
      asked.delete(entry);
      deps.logger.warn("inquiry failed", { assignment: entry.info.id, error });
    }
  };

  return {
    consider(entry) {
      const now = clock.monotonic();
      const since = entry.lastReport ?? begun.get(entry) ?? now;
      begun.set(entry, since);
      const before = asked.get(entry);
      const first = entry.restored && before === undefined && entry.lastReport === null;
      // One that ended while nobody led has said its last word already, to Gitea or to nobody.
      const patienceMs = !first ? 2 * deps.zombieTimeoutMs : hasEnded(entry) ? 0 : deps.restoredMs;
      if (now - Math.max(since, before ?? 0) < patienceMs) return;
      // After a restart they may all be due at once; the next look has the others.
      if (underWay >= MAX_UNDER_WAY) return;
      asked.set(entry, now);
      underWay++;
      deps.tasks.spawn("inquiry", (signal) => ask(entry, signal).finally(() => underWay--));
    },
  };
}

const MAX_UNDER_WAY = 32;

/** By the backend's word. */
function hasEnded({ state }: Entry): boolean {
  return "presence" in state && state.presence !== "alive";
}
