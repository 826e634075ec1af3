import type { Call } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import { oneLine } from "../../lib/one_line.ts";
import type { ExecutorCluster } from "./cluster.ts";
import type { Pod } from "./pod.ts";
import { waitingOf } from "./status.ts";

/** Finds out why a Pod does not start where its status does not say: volumes, networks, sandboxes. */
export interface Why {
  /**
   * The last warning about a Pod that should have started by now, in words; null when there is none,
   * or events cannot be read. Asks the cluster at most every ten seconds a Pod.
   */
  ask(pod: Pod, call: Call): Promise<string | null>;
  /** Asks about a few of these, and forgets all others: for a complete list. */
  askSome(pods: readonly Pod[], call: Call): Promise<void>;
  /** What was last found out, without asking. */
  known(uid: string): string | null;
}

/** A start takes this long with an image that is there. */
const PATIENCE_MS = 10_000;
const ASK_MS = 10_000;
/** Requests that a list may cost beside itself; the others are asked about next time. */
const ASKED_AT_ONCE = 8;

/** Makes {@link Why}. */
export function createWhy(deps: {
  readonly cluster: Pick<ExecutorCluster, "listPodEvents">;
  readonly clock: Clock;
}): Why {
  const { cluster, clock } = deps;
  const pods = new Map<
    string,
    { readonly since: number; askedAt: number; detail: string | null }
  >();

  /** Undefined for one that needs no reason; counts from the first look at it. */
  const look = (pod: Pod) => {
    const waiting = waitingOf(pod);
    if (waiting === null || waiting.hope !== "maybe" || pod.node === null) {
      pods.delete(pod.uid);
      return undefined;
    }
    const known = pods.get(pod.uid) ??
      { since: clock.monotonic(), askedAt: -Infinity, detail: null };
    pods.set(pod.uid, known);
    return known;
  };

  const isDue = ({ since, askedAt }: Waiter) => {
    const now = clock.monotonic();
    return now - since >= PATIENCE_MS && now - askedAt >= ASK_MS;
  };

  const ask: Why["ask"] = async (pod, call) => {
    const known = look(pod);
    if (known === undefined) return null;
    if (!isDue(known)) return known.detail;
    known.askedAt = clock.monotonic();
    try {
      const events = await cluster.listPodEvents(pod, call);
      const warning = events.findLast(({ type }) => type === "Warning");
      known.detail = warning === undefined
        ? null
        : oneLine(`${warning.reason}: ${warning.message}`);
    } catch {
      // The status alone must do; aborting is found out by whoever comes next.
    }
    return known.detail;
  };

  return {
    ask,
    async askSome(listed, call) {
      const uids = new Set(listed.map(({ uid }) => uid));
      for (const uid of pods.keys()) if (!uids.has(uid)) pods.delete(uid);
      const due = listed.filter((pod) => {
        const known = look(pod);
        return known !== undefined && isDue(known);
      });
      await Promise.all(due.slice(0, ASKED_AT_ONCE).map((pod) => ask(pod, call)));
    },
    known: (uid) => pods.get(uid)?.detail ?? null,
  };
}

/** A Pod that should have started; `since` and `askedAt` are monotonic. */
interface Waiter {
  readonly since: number;
  askedAt: number;
  detail: string | null;
}
