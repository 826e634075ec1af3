import type { Clock } from "../../lib/clock.ts";

/** Allows so many attempts at once, and one more after each pause. */
export interface AttemptOptions {
  readonly burst: number;
  readonly everyMs: number;
}

/** Counts attempts by who makes them. */
export interface Attempts {
  /** Takes one; false when it is one too many. */
  take(who: string): boolean;
}

/** Of sign-in, and of wrong tokens, from one address. */
export const ATTEMPTS: AttemptOptions = { burst: 10, everyMs: 3_000 };

/** Addresses that are told apart; beyond them the longest quiet one is forgotten. */
const MAX_ADDRESSES = 1_000;

/** Makes {@link Attempts}: a token bucket for each address. */
export function createAttempts(
  { clock }: { readonly clock: Pick<Clock, "monotonic"> },
  { burst, everyMs }: AttemptOptions,
): Attempts {
  const buckets = new Map<string, { readonly left: number; readonly at: number }>();
  return {
    take(who) {
      const now = clock.monotonic();
      const { left, at } = buckets.get(who) ?? { left: burst, at: now };
      const filled = Math.min(burst, left + (now - at) / everyMs);
      const allowed = filled >= 1;
      buckets.delete(who);
      buckets.set(who, { left: allowed ? filled - 1 : filled, at: now });
      const [oldest] = buckets.keys();
      if (buckets.size > MAX_ADDRESSES && oldest !== undefined) buckets.delete(oldest);
      return allowed;
    },
  };
}
