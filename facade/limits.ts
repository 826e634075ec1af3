import type { Clock } from "../lib/clock.ts";

/** Bounds on what one peer may ask for, so that many executors cannot starve the control loops. */
export interface PeerLimits {
  /** Admits one call of `peer`; dispose it at the call's end. Otherwise says which bound was met. */
  enter(peer: string): ({ readonly kind: "admitted" } & Disposable) | NotAdmitted;
}

/** Which bound a call has met; its caller may be told. */
export interface NotAdmitted {
  readonly kind: "refused";
  readonly why: string;
}

/** Numbers of {@link createPeerLimits}. */
export interface LimitOptions {
  /** Calls a second that a peer may make in the long run. */
  readonly perSecond: number;
  /** Calls it may make at once after a rest. */
  readonly burst: number;
  /** Calls of one peer that may be under way. */
  readonly concurrent: number;
  /** Calls of all peers that may be under way. */
  readonly total: number;
}

/** An executor makes about 2 calls a second; a gate that catches up after an outage makes many. */
export const DEFAULT_LIMITS: LimitOptions = {
  perSecond: 200,
  burst: 2_000,
  concurrent: 16,
  total: 1_024,
};

interface Bucket {
  tokens: number;
  at: number;
  inside: number;
}

/** Peers remembered before full buckets are dropped. */
const SWEEP_AT = 1_024;

/** A token bucket and a count of open calls for each peer. Peers at rest are forgotten. */
export function createPeerLimits(clock: Clock, options: LimitOptions = DEFAULT_LIMITS): PeerLimits {
  const { perSecond, burst, concurrent, total } = options;
  const buckets = new Map<string, Bucket>();
  let inside = 0;

  const refill = (bucket: Bucket) => {
    const now = clock.monotonic();
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) / 1000 * perSecond);
    bucket.at = now;
  };
  const sweep = () => {
    for (const [peer, bucket] of buckets) {
      refill(bucket);
      if (bucket.inside === 0 && bucket.tokens >= burst) buckets.delete(peer);
    }
  };
  const bucketOf = (peer: string): Bucket => {
    const known = buckets.get(peer);
    if (known !== undefined) return known;
    if (buckets.size >= SWEEP_AT) sweep();
    const bucket = { tokens: burst, at: clock.monotonic(), inside: 0 };
    buckets.set(peer, bucket);
    return bucket;
  };

  return {
    enter(peer) {
      if (inside >= total) return refused(`${total} calls are under way`);
      const bucket = bucketOf(peer);
      refill(bucket);
      if (bucket.inside >= concurrent) {
        return refused(`${concurrent} calls of this peer are under way`);
      }
      if (bucket.tokens < 1) return refused(`more than ${perSecond} calls a second`);
      bucket.tokens--;
      bucket.inside++;
      inside++;
      let open = true;
      return {
        kind: "admitted",
        [Symbol.dispose]() {
          if (!open) return;
          open = false;
          bucket.inside--;
          inside--;
        },
      };
    },
  };
}

function refused(why: string): NotAdmitted {
  return { kind: "refused", why };
}
