import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import type { Call } from "./backend.ts";

/** The label by which the facade's Service finds the leader's Pod. */
export interface PodLabel {
  /** Puts it on that Pod, or takes it off; false when there is no such Pod. One try. */
  set(pod: string, on: boolean, call: Call): Promise<boolean>;
}

/** Keeps the label where it belongs. */
export interface LeaderLabel {
  /** Takes it off our Pod: a process before us, in the same Pod, may have died with it. Never rejects. */
  clear(signal: AbortSignal): Promise<void>;
  /**
   * Call it while leading. Takes the label off the predecessor's Pod and keeps it on ours until
   * aborted, then takes it off within 2 s. Never rejects.
   */
  keep(signal: AbortSignal): Promise<void>;
}

/** Somebody may take it off by hand. */
const AGAIN_MS = 30_000;
const BACKOFF = { firstMs: 500, maxMs: 15_000 };
/** For taking it off: the process is about to end. */
const CLEAR_MS = 2_000;

/**
 * Makes a {@link LeaderLabel} for the Pod named `pod` (its HOSTNAME). Without the label executors do not
 * find the leader, so that it is tried for ever; a Pod that does not exist is only a warning.
 */
export function createLeaderLabel(deps: {
  readonly label: PodLabel;
  readonly pod: string;
  /** Holder of the Lease that this leader has replaced; null when the Lease was free. */
  predecessor(): string | null;
  /** Throws when this process may not act any more. */
  guard(): void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
}): LeaderLabel {
  const { label, pod, clock } = deps;
  const logger = deps.logger.child({ component: "leader" });

  /** Until the Pod of the dead one is gone, connections would go there, too. */
  const move = async (from: string | null, signal: AbortSignal) => {
    deps.guard();
    if (!(await label.set(pod, true, { signal }))) {
      logger.warn("the leader's label is not set: there is no Pod of our name", { pod });
    }
    if (from === null || from === pod) return;
    deps.guard();
    if (await label.set(from, false, { signal })) {
      logger.info("the leader's label moved", { from, pod });
    }
  };

  const clear = async (signal: AbortSignal) => {
    using limit = clock.timeout(CLEAR_MS);
    try {
      await label.set(pod, false, { signal: AbortSignal.any([signal, limit.signal]) });
    } catch (error) {
      if (!signal.aborted) {
        logger.warn("the leader's label is not taken off our Pod", { pod, error });
      }
    }
  };

  return {
    clear,
    async keep(signal) {
      let from = podOfHolder(deps.predecessor());
      let failures = 0;
      while (!signal.aborted) {
        let waitMs = AGAIN_MS;
        try {
          await move(from, signal);
          from = null;
          failures = 0;
        } catch (error) {
          if (signal.aborted) break;
          failures++;
          if (failures === 1) {
            logger.warn("the leader's label is not set: tried again", { pod, error });
          }
          waitMs = backoffMs(failures, BACKOFF, deps.random);
        }
        await clock.sleep(waitMs, signal).catch(() => {});
      }
      await clear(new AbortController().signal);
    },
  };
}

/** Name of the Pod that a holder `HOSTNAME_<uuid>` runs in; null for holders of other kinds. */
export function podOfHolder(holder: string | null): string | null {
  const uuid = /^(.+)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.exec(holder ?? "");
  return uuid?.[1] ?? null;
}
