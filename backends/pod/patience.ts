import type { Clock } from "../../lib/clock.ts";
import type { Pod } from "./pod.ts";
import { waitingOf } from "./status.ts";

/** When Kubernetes goes on trying and we do not, milliseconds. */
export interface PatienceTimes {
  /** An image that cannot be pulled, a container that cannot be made. */
  readonly stuckMs: number;
  /** After the grace period of a deleted Pod. */
  readonly overdueMs: number;
}

/** A registry that answers once in a minute; a kubelet that is restarted. */
export const DEFAULT_PATIENCE: PatienceTimes = { stuckMs: 60_000, overdueMs: 60_000 };

/** Measures by our own monotonic clock for how long Pods have been seen in a bad state. */
export interface Patience {
  /** Takes what is seen now, and says what has lasted too long. */
  judge(pod: Pod): { readonly stuck: boolean; readonly overdue: boolean };
  /** Forgets those that are not there any more. */
  keepOnly(uids: ReadonlySet<string>): void;
  forget(uid: string): void;
}

/**
 * Makes a {@link Patience}. The API server's time stamps are not compared with our clock; a restart
 * of the controller begins to measure anew.
 */
export function createPatience(clock: Clock, times: PatienceTimes): Patience {
  const stuck = new Map<string, number>();
  const deleted = new Map<string, number>();

  const since = (seen: Map<string, number>, uid: string, bad: boolean): number => {
    if (!bad) {
      seen.delete(uid);
      return 0;
    }
    const first = seen.get(uid) ?? clock.monotonic();
    seen.set(uid, first);
    return clock.monotonic() - first;
  };

  return {
    judge(pod) {
      const cannotStart = pod.deletion === null && waitingOf(pod)?.hope === "hardly";
      const stuckFor = since(stuck, pod.uid, cannotStart);
      // Also one that has ended: its node has to say that nothing of it is left.
      const leaving = pod.deletion !== null;
      const leavingFor = since(deleted, pod.uid, leaving);
      const graceMs = 1000 * (pod.deletion?.graceSeconds ?? 0);
      return {
        stuck: cannotStart && stuckFor >= times.stuckMs,
        overdue: leaving && leavingFor >= graceMs + times.overdueMs,
      };
    },
    keepOnly(uids) {
      for (const seen of [stuck, deleted]) {
        for (const uid of seen.keys()) if (!uids.has(uid)) seen.delete(uid);
      }
    },
    forget(uid) {
      stuck.delete(uid);
      deleted.delete(uid);
    },
  };
}
