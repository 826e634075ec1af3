import { type LeaseRecord, microTime } from "./lease.ts";

/** Times of an elector, milliseconds; names and meaning are client-go's. */
export interface LeaseTimes {
  /** Written into the Lease: who has seen no change for so long may take it. Whole seconds. */
  readonly leaseMs: number;
  /** A leader that could not renew for so long stops by itself. */
  readonly renewDeadlineMs: number;
  /** Between renewals, and between tries. */
  readonly retryMs: number;
}

/** What Kubernetes' own components use. */
export const DEFAULT_LEASE_TIMES: LeaseTimes = {
  leaseMs: 15_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
};

/** A waiting contender looks again after retryMs * (1 + random() * JITTER). */
export const JITTER = 1.2;

/** Throws `RangeError` for times with which two could lead, by the same rules as client-go. */
export function checkLeaseTimes(times: LeaseTimes): void {
  const { leaseMs, renewDeadlineMs, retryMs } = times;
  if (
    retryMs > 0 && renewDeadlineMs > retryMs * JITTER && leaseMs > renewDeadlineMs &&
    leaseMs % 1_000 === 0
  ) return;
  throw new RangeError(
    `Elect a leader with ${JSON.stringify(times)}: ` +
      `it must be leaseMs > renewDeadlineMs > ${JITTER} * retryMs, leaseMs in whole seconds`,
  );
}

/**
 * How long a Lease counts since it was last seen to change: its own duration, whoever wrote it. One
 * that does not say, because somebody edited it, counts as long as ours would (client-go: not at all).
 */
export function durationOf(record: LeaseRecord, times: LeaseTimes): number {
  const { durationSeconds } = record;
  return durationSeconds !== null && durationSeconds > 0 ? durationSeconds * 1_000 : times.leaseMs;
}

/** Who writes, and when (milliseconds since the epoch, for people only). */
export interface Writer {
  readonly self: string;
  readonly times: LeaseTimes;
  readonly now: number;
}

/** The Lease with a new holder; `last` is what stood there before, null when nothing is known of it. */
export function takenOver(last: LeaseRecord | null, { self, times, now }: Writer): LeaseRecord {
  return {
    holder: self,
    durationSeconds: times.leaseMs / 1_000,
    acquireTime: microTime(now),
    renewTime: microTime(now),
    transitions: last === null ? 0 : last.transitions + 1,
  };
}

/** The Lease renewed by its holder. What a hand has taken away is put back. */
export function renewed(last: LeaseRecord, { self, times, now }: Writer): LeaseRecord {
  const text = microTime(now);
  return {
    holder: self,
    durationSeconds: times.leaseMs / 1_000,
    acquireTime: last.acquireTime ?? text,
    // Always another text, though the wall clock was set back: no change looks like a dead holder.
    renewTime: text === last.renewTime ? text.replace("000Z", "001Z") : text,
    transitions: last.transitions,
  };
}

/** The Lease given back: the next one takes it at once. */
export function released(last: LeaseRecord, now: number): LeaseRecord {
  return {
    holder: "",
    durationSeconds: 1,
    acquireTime: microTime(now),
    renewTime: microTime(now),
    transitions: last.transitions,
  };
}
