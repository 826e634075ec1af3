import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { backoffMs } from "../../lib/retry.ts";
import type { Call } from "../backend.ts";

/** The label by which the facade's Service finds the leader's Pod. */
export interface PodLabel {
  /** Puts it on that Pod, or takes it off; false when there is no such Pod. One try. */
  set(pod: string, on: boolean, call: Call): Promise<boolean>;
  /** Names of the Pods that have it as leaders of this Lease; never those of another installation. One try. */
  list(call: Call): Promise<readonly string[]>;
}

/** Keeps the label where it belongs. */
export interface LeaderLabel {
  /**
   * Takes it off our Pod: a process before us, in the same Pod, may have died with it. One try of 2 s;
   * true when it is off. Never rejects.
   */
  clear(signal: AbortSignal): Promise<boolean>;
  /** Call it while waiting, after a {@link clear} that failed: goes on until it is off, or aborted. Never rejects. */
  clearLater(signal: AbortSignal): Promise<void>;
  /**
   * Call it while leading. Takes the label off the predecessor's Pod and keeps it on ours alone until
   * aborted, then takes it off within 2 s, or leaves that to the next leader. A former leader's request
   * may put it on another Pod long after that: it is off again within 5 s in the first minute, and
   * within 30 s later. Never rejects.
   */
  keep(signal: AbortSignal): Promise<void>;
}

/** Somebody may take it off by hand. */
const AGAIN_MS = 30_000;
/** After a request without an answer that may still take it off, or put it on elsewhere. */
const UNSURE_MS = 5_000;
/** A request of a former leader that comes later than this has been on its way for very long. */
const WATCHFUL_MS = 60_000;
/** More Pods than any installation has. */
const MAX_OTHERS = 16;
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
  /** Holder of the Lease before this leader, dead or resigned; null when none is known. */
  predecessor(): string | null;
  /** Throws when this process may not act any more. */
  guard(): void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
}): LeaderLabel {
  const { label, pod, clock } = deps;
  const logger = deps.logger.child({ component: "leader" });
  /** The last request that takes it off had no answer: it may still arrive, after we have put it on again. */
  let unsure = false;
  /** Tries in a row to put it on our Pod that have failed. */
  let failures = 0;

  /** Puts it on our Pod, then takes it off `from`: until a dead one's Pod is gone, connections would go there, too. */
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

  /** Keeps it on our Pod; the predecessor's loses it with the first success. */
  const keepOn = async (signal: AbortSignal) => {
    let from = podOfHolder(deps.predecessor());
    failures = 0;
    while (!signal.aborted) {
      let waitMs = AGAIN_MS;
      try {
        await move(from, signal);
        if (unsure) waitMs = UNSURE_MS;
        unsure = false;
        from = null;
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        if (failures === 1) {
          logger.warn("the leader's label is not set: tried again", { pod, error });
        }
        waitMs = backoffMs(failures, BACKOFF, deps.random);
      }
      await clock.sleep(waitMs, signal).catch(() => {});
    }
  };

  /** Looks which Pods have it, and puts that right. True when no other had it. */
  const compare = async (signal: AbortSignal): Promise<boolean> => {
    deps.guard();
    const labelled = await label.list({ signal });
    const others = labelled.filter((name) => name !== pod).slice(0, MAX_OTHERS);
    for (const other of others) await move(other, signal);
    // A request of a former leader may have taken it off ours just as well.
    if (others.length === 0 && !labelled.includes(pod)) await move(null, signal);
    return others.length === 0;
  };

  /** Keeps it off all others: a former leader's request may come late. */
  const keepAlone = async (signal: AbortSignal) => {
    let watchfulUntil = clock.monotonic() + WATCHFUL_MS;
    let told = false;
    while (!signal.aborted) {
      const waitMs = clock.monotonic() < watchfulUntil ? UNSURE_MS : AGAIN_MS;
      await clock.sleep(waitMs, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        if (!await compare(signal)) watchfulUntil = clock.monotonic() + WATCHFUL_MS;
        told = false;
      } catch (error) {
        if (signal.aborted) return;
        // Where our own cannot be set either, that has been said.
        if (!told && failures === 0) {
          logger.warn("other Pods with the leader's label are not looked for: tried again", {
            error,
          });
        }
        told = true;
      }
    }
  };

  const takeOff = async (signal: AbortSignal) => {
    unsure = true;
    await label.set(pod, false, { signal });
    unsure = false;
  };

  const clear = async (signal: AbortSignal): Promise<boolean> => {
    using limit = clock.timeout(CLEAR_MS);
    try {
      await takeOff(AbortSignal.any([signal, limit.signal]));
      return true;
    } catch (error) {
      if (!signal.aborted) {
        logger.warn("the leader's label is not taken off our Pod", { pod, error });
      }
      return false;
    }
  };

  return {
    clear,
    async clearLater(signal) {
      for (let failures = 1; !signal.aborted; failures++) {
        await clock.sleep(backoffMs(failures, BACKOFF, deps.random), signal).catch(() => {});
        if (signal.aborted) return;
        try {
          // However slow: nobody waits for it.
          await takeOff(signal);
          return logger.info("the leader's label is taken off our Pod", { pod });
        } catch {
          // Said by the first try.
        }
      }
    },
    async keep(signal) {
      await Promise.all([keepOn(signal), keepAlone(signal)]);
      await clear(new AbortController().signal);
    },
  };
}

/** Name of the Pod that a holder `HOSTNAME_<uuid>` runs in; null for holders of other kinds. */
export function podOfHolder(holder: string | null): string | null {
  const uuid = /^(.+)_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.exec(holder ?? "");
  return uuid?.[1] ?? null;
}
