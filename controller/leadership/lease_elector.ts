import { type Bell, createBell } from "../../lib/bell.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { AddressProof } from "./address_proof.ts";
import type { Leadership, LeadershipStatus } from "./leadership.ts";
import { type LeaseStore, msOfMicroTime, type StoredLease } from "./lease.ts";
import { type Attempt, createLeaseClaim } from "./lease_claim.ts";
import { checkLeaseTimes, DEFAULT_LEASE_TIMES, JITTER, type LeaseTimes } from "./lease_rules.ts";

/** What this process knows of the Lease. Times are milliseconds since the epoch. */
export interface LeaseStatus extends LeadershipStatus {
  /** How often the Lease has changed hands; null while none was seen. */
  readonly transitions: number | null;
  /** Where the holder's pages are reached; null when it has not said, or somebody else has. */
  readonly address: string | null;
  /** Why the last try has failed; null when it has not. */
  readonly lastError: string | null;
}

/** A {@link Leadership} decided by a Lease. */
export interface LeaseElector extends Leadership {
  status(): LeaseStatus;
  /** The holder before this process, dead or resigned; null when this process has seen none. */
  predecessor(): string | null;
}

/** What {@link createLeaseElector} needs. */
export interface LeaseElectorDeps {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** Name of this process, unlike every other's, those before it under its HOSTNAME included. */
  readonly self: string;
  /**
   * Annotation of the Lease with the leader's address, e.g. `ci.ddupan.top/admin-advertise`; the one with
   * `-proof` at its end has the proof of it.
   */
  readonly addressAnnotation: string;
  /** What we say there while we lead; null removes another's. */
  readonly address: string | null;
  /** An address without it counts as none: whoever may write the Lease could send readers anywhere. */
  readonly proof: AddressProof;
  /** This process may not act any more; told once. */
  onLost(detail: string): void;
}

/** Between looks that hints of the store bring about. */
const HINT_PAUSE_MS = 250;
const RELEASE_MS = 5_000;

/**
 * Leader election on a Lease, in company of contenders built on client-go.
 *
 * ```
 *           nobody's, or silent for its duration: write over what was seen
 *  waiting ---------------------------------------------------------------> leading
 *                                     another's, or not renewed in time        |
 *                                             onLost  <------------------------+
 * ```
 * Rules of failure: only this process's monotonic clock counts. It acts while less than the renew
 * deadline has passed since the *start* of its last successful renewal; others take the Lease a whole
 * lease duration after that renewal at the earliest, so that it has stopped before. What was frozen and
 * is woken finds the time over at its first `check()`. A store that is away is asked again every retry
 * period; a leader without it has lost at the deadline, since others may reach it.
 *
 * Hints of the store only make it look sooner: at a released Lease, and at one that somebody deleted
 * or edited under the leader. Without hints it works as client-go does.
 */
export function createLeaseElector(
  deps: LeaseElectorDeps,
  times: LeaseTimes = DEFAULT_LEASE_TIMES,
): LeaseElector {
  checkLeaseTimes(times);
  const { store, clock, self, addressAnnotation, address, proof } = deps;
  const logger = deps.logger.child({ component: "leader" });
  const proofAnnotation = `${addressAnnotation}-proof`;
  const annotations = {
    [addressAnnotation]: address,
    [proofAnnotation]: address === null ? null : proof.sign({ holder: self, address }),
  };
  const claim = createLeaseClaim({ store, clock, self, times, annotations });
  let leading = false;
  let lastError: string | null = null;
  let knownHolder: string | null = null;

  /** The holder's address, if it has said so itself: a holder that says nothing (client-go) leaves another's. */
  const addressOf = ({ record: { holder }, annotations }: StoredLease): string | null => {
    const said = annotations[addressAnnotation];
    if (holder === "" || said === undefined) return null;
    return proof.verify({ holder, address: said }, annotations[proofAnnotation]) ? said : null;
  };

  const sure = () => leading && !claim.doubted() && clock.monotonic() < claim.heldUntil();

  /** Rings `bell` at each state of the Lease that `concerns` the caller, until disposed. */
  const follow = (bell: Bell, signal: AbortSignal, concerns: (lease?: StoredLease) => boolean) => {
    const closing = new AbortController();
    store.watch((lease) => {
      if (concerns(lease)) bell.ring();
    }, AbortSignal.any([signal, closing.signal]));
    return { [Symbol.dispose]: () => closing.abort() };
  };

  /** Waits `ms`, less when the bell rings, though never less than the pause between hints. */
  const pause = async (bell: Bell, ms: number, signal: AbortSignal) => {
    const end = clock.monotonic() + ms;
    await clock.sleep(Math.max(0, Math.min(ms, HINT_PAUSE_MS)), signal).catch(() => {});
    // Asked anew: a frozen process that is woken must not wait on.
    const left = end - clock.monotonic();
    if (left > 0) await bell.wait(left, signal);
  };

  const note = (outcome: Attempt) => {
    const error = outcome.kind === "failed" ? textOf(outcome.error) : null;
    if (error !== null && error !== lastError) logger.warn("the lease cannot be used", { error });
    lastError = error;
    if (outcome.kind === "vanished") lastError = "the Lease was deleted while another held it";
    if (outcome.kind !== "taken" || outcome.holder === knownHolder) return;
    knownHolder = outcome.holder;
    logger.info("another controller leads, this one waits", { holder: knownHolder, self });
  };

  const lose = (detail: string) => {
    leading = false;
    claim.forget();
    deps.onLost(detail);
  };

  return {
    predecessor: () => claim.predecessor(),
    status() {
      const seen = claim.seen();
      if (seen === null) return { ...NOTHING_SEEN, lastError };
      const { record } = seen.lease;
      return {
        holder: record.holder === "" ? null : record.holder,
        leading,
        acquiredAt: record.holder === "" ? null : msOfMicroTime(record.acquireTime),
        renewedAt: seen.changedAt,
        leaseSeconds: record.durationSeconds,
        transitions: record.transitions,
        address: addressOf(seen.lease),
        lastError,
      };
    },
    check() {
      if (sure()) return;
      throw new Error(
        `Act as the leader: "${self}" is not sure to hold the Lease (any more): it was not renewed in time`,
      );
    },
    async acquire(signal) {
      const bell = createBell(clock);
      using _hints = follow(bell, signal, () => true);
      while (true) {
        const outcome = await claim.attempt(signal);
        note(outcome);
        if (outcome.kind === "held") {
          if (clock.monotonic() < claim.heldUntil()) break;
          claim.forget(); // The answer was so slow that it says nothing of now.
        }
        const retry = times.retryMs * (1 + deps.random() * JITTER);
        const known = outcome.kind === "taken" || outcome.kind === "vanished";
        const until = known ? outcome.until - clock.monotonic() : Infinity;
        await pause(bell, Math.min(retry, Math.max(until, HINT_PAUSE_MS)), signal);
        signal.throwIfAborted();
      }
      leading = true;
      logger.info("leading", { self, transitions: claim.seen()?.lease.record.transitions });
    },
    async hold(signal) {
      const bell = createBell(clock);
      using _hints = follow(bell, signal, (lease) => {
        // Our own renewals are heard, too; of those only one whose duration somebody has edited matters.
        if (lease?.record.holder === self) {
          return lease.record.durationSeconds !== times.leaseMs / 1_000;
        }
        claim.doubt(lease === undefined);
        return true;
      });
      while (leading && !signal.aborted) {
        const remaining = claim.heldUntil() - clock.monotonic();
        await pause(bell, Math.min(times.retryMs, remaining), signal);
        if (signal.aborted) return;
        if (clock.monotonic() >= claim.heldUntil()) {
          return lose(
            `not renewed for ${times.renewDeadlineMs / 1_000} s: ${lastError ?? "it was stopped"}`,
          );
        }
        const outcome = await claim.attempt(signal).catch(() => null);
        if (outcome === null) return; // Aborted.
        if (outcome.kind === "taken") {
          const { holder } = outcome;
          return lose(holder === "" ? "another has led meanwhile" : `"${holder}" leads`);
        }
        note(outcome);
      }
    },
    async [Symbol.asyncDispose]() {
      leading = false;
      using limit = clock.timeout(Math.min(RELEASE_MS, times.renewDeadlineMs));
      try {
        await claim.release(limit.signal);
      } catch (error) {
        logger.warn("leadership is not given back, the next one waits", { error });
      }
    },
  };
}

const NOTHING_SEEN: LeaseStatus = {
  holder: null,
  leading: false,
  acquiredAt: null,
  renewedAt: null,
  leaseSeconds: null,
  transitions: null,
  address: null,
  lastError: null,
};

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
