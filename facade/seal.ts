import { GiteaError } from "../controller/gitea.ts";
import type { Clock } from "../lib/clock.ts";
import { retryForever } from "../lib/retry.ts";
import type { Relay } from "./relay.ts";

/** As long as a gate goes on delivering. */
const SEAL_MS = 3_600_000;
const SEAL_RETRY = { firstMs: 1_000, maxMs: 60_000 };

/**
 * Seals the log of a job that has ended, for up to an hour while Gitea is away: nobody else would,
 * and an unsealed log stays in Gitea's database. Rejects with the last error, or the signal's reason.
 */
export async function sealPatiently(
  relay: Pick<Relay, "seal">,
  options: {
    readonly clock: Clock;
    readonly random?: (() => number) | undefined;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { clock, random = Math.random, signal } = options;
  using limit = clock.timeout(SEAL_MS);
  const patience = AbortSignal.any([signal, limit.signal]);
  await retryForever(() => relay.seal(patience), {
    clock,
    random,
    backoff: SEAL_RETRY,
    signal: patience,
    final: (error) => !(error instanceof GiteaError) || !error.retryable,
  });
}
