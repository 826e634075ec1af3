import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Entry } from "./entry.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentId } from "./model/ids.ts";
import { fromWireResult, isGone } from "./settle.ts";

/**
 * Keeps tasks alive at Gitea while they wait, and hears of their cancellation: Gitea tells it only
 * in the answer to `UpdateTask`, and takes a task that is silent for its zombie time-out for dead.
 * Executors in the making and the next few waiting tasks are asked every 10 s, the others within a
 * third of the zombie time-out, all of them together at most `maxRps` times a second.
 */
export interface Vigil {
  /** Runs until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** No more heartbeats for this one; resolves when none is under way. */
  stop(entry: Entry): Promise<void>;
}

/** Makes a {@link Vigil}. `next(entry)` tells whether a stored task is among the next to be admitted. */
export function createVigil(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly gitea: Gitea;
  readonly ledger: Ledger;
  readonly zombieTimeoutMs: number;
  readonly maxRps: number;
  /** Stored tasks per backend that are asked as often as those in the making. */
  readonly near: (entry: Entry) => boolean;
}): Vigil {
  const { clock, ledger } = deps;
  const asked = new Map<AssignmentId, number>();
  const underWay = new Map<AssignmentId, Promise<void>>();
  const intervalOf = (entry: Entry) =>
    entry.state.kind === "stored" && !deps.near(entry) || entry.state.kind === "parked"
      ? deps.zombieTimeoutMs / 3
      : NEAR_MS;

  const ask = async (entry: Entry, signal: AbortSignal) => {
    const id = BigInt(entry.info.taskId);
    try {
      const state = create(TaskStateSchema, { id });
      const answer = await deps.gitea.updateTask({ state }, { signal });
      const result = fromWireResult(answer.state?.result ?? 0);
      if (result !== null) {
        const detail = result === "cancelled"
          ? "cancelled at Gitea"
          : `Gitea ended the job: ${result}`;
        ledger.dispatch(entry.info.id, { kind: "cancelled", detail });
      }
    } catch (error) {
      if (error instanceof GiteaError && isGone(error)) {
        const detail = `Gitea does not know the job any more: ${error.message}`;
        ledger.dispatch(entry.info.id, { kind: "cancelled", detail });
      } else if (!signal.aborted) {
        deps.logger.warn("waiting heartbeat failed", { assignment: entry.info.id, error });
      }
    }
  };

  const due = (): Entry | undefined => {
    const now = clock.monotonic();
    let first: Entry | undefined;
    let lateBy = 0;
    for (const entry of ledger.entries()) {
      if (!waits(entry) || entry.claiming !== null || underWay.has(entry.info.id)) continue;
      // Gitea has just handed it out: the first heartbeat is due one interval later.
      const last = asked.get(entry.info.id) ?? now - (clock.now() - entry.createdAt);
      const late = now - last - intervalOf(entry);
      if (late >= 0 && (first === undefined || late > lateBy)) {
        first = entry;
        lateBy = late;
      }
    }
    return first;
  };

  const forgetEnded = () => {
    for (const id of asked.keys()) {
      const entry = ledger.get(id);
      if (entry === undefined || !waits(entry)) asked.delete(id);
    }
  };

  return {
    async run(signal) {
      const pause = 1_000 / deps.maxRps;
      while (!signal.aborted) {
        const entry = due();
        if (entry === undefined) {
          forgetEnded();
          await clock.sleep(IDLE_MS, signal).catch(() => {});
          continue;
        }
        const { id } = entry.info;
        asked.set(id, clock.monotonic());
        const beat = ask(entry, signal).finally(() => underWay.delete(id));
        underWay.set(id, beat);
        await Promise.all([beat, clock.sleep(pause, signal).catch(() => {})]);
      }
    },
    async stop(entry) {
      await underWay.get(entry.info.id);
    },
  };
}

const NEAR_MS = 10_000;
const IDLE_MS = 1_000;

function waits(entry: Entry): boolean {
  switch (entry.state.kind) {
    case "stored":
    case "parked":
    case "admitted":
    case "starting":
    case "ready":
      return true;
    case "claimed":
    case "running":
    case "settling":
    case "terminal":
    case "cleaned":
      return false;
    default:
      return entry.state satisfies never;
  }
}
