import { abortable } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Call } from "../backend.ts";
import {
  type LeaseAnnotations,
  LeaseError,
  type LeaseRecord,
  type LeaseStore,
  sameRecord,
  type StoredLease,
} from "./lease.ts";
import { durationOf, type LeaseTimes, released, renewed, takenOver } from "./lease_rules.ts";

/** What became of one try to take or renew the Lease. */
export type Attempt =
  /** Ours; how long that counts says {@link LeaseClaim.heldUntil}. */
  | { readonly kind: "held" }
  /** Another's, and it counts until `until` (monotonic). */
  | { readonly kind: "taken"; readonly holder: string; readonly until: number }
  /** It was deleted under a holder that may not know it: nobody may make it before `until`. */
  | { readonly kind: "vanished"; readonly until: number }
  | { readonly kind: "failed"; readonly error: unknown };

/** What one process knows of the Lease, and its writes to it. */
export interface LeaseClaim {
  /** One try. Rejects with the signal's reason only. */
  attempt(signal: AbortSignal): Promise<Attempt>;
  /**
   * Monotonic time until which nobody else can have taken it: the start of the last renewal that
   * succeeded, and the renew deadline. -Infinity while it is not ours.
   */
  heldUntil(): number;
  /**
   * Until the next renewal it is not certain that it is still ours: somebody has touched it, or (`gone`)
   * deleted it.
   */
  doubt(gone: boolean): void;
  doubted(): boolean;
  /** It is another's now, whatever was written. */
  forget(): void;
  /** Gives it back if it is ours, tried until aborted. Rejects with `LeaseError`, or the reason. */
  release(signal: AbortSignal): Promise<void>;
  /**
   * Whom this process has seen to hold it last, whether that one has died or given it back; null when
   * it has seen nobody but itself.
   */
  predecessor(): string | null;
  /** The Lease as last seen, and when it was last seen to change, milliseconds since the epoch. */
  seen(): { readonly lease: StoredLease; readonly changedAt: number } | null;
}

interface Observed {
  readonly lease: StoredLease;
  /** Monotonic; the wait for a silent holder counts from here. */
  readonly since: number;
  readonly changedAt: number;
}

const RELEASE_PAUSE_MS = 250;

/**
 * Makes a {@link LeaseClaim}. The order of steps is client-go's (tools/leaderelection, v0.37):
 *
 * ```
 *  ours as last seen? --yes--> write over what was seen --ok--> held
 *        | no                        | conflict, no answer
 *        v                           v
 *      read: absent -> make it;  another's and not silent long enough -> taken;  else write over it
 * ```
 * The writer's times are never compared with a clock: only how long the record stayed the same. It
 * differs in three cases, each on the side of waiting: a Lease deleted under a holder is not made anew
 * before that holder has stopped; a leader that finds another's name, or a released Lease that others
 * have had since, has lost, even if that one is silent; a Lease without a duration counts as long as ours.
 *
 * A write whose answer was lost is found by the next read under our name, and then only renewed.
 */
export function createLeaseClaim(deps: {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly self: string;
  readonly times: LeaseTimes;
  readonly annotations: LeaseAnnotations;
}): LeaseClaim {
  const { store, clock, self, times } = deps;
  const requestMs = Math.max(times.renewDeadlineMs / 2, 1_000);
  let observed: Observed | null = null;
  /** Since when another's Lease is seen to be deleted, monotonic; null while it is there. */
  let vanishedAt: number | null = null;
  let heldUntil = -Infinity;
  let doubted = false;
  /** Counts doubts, so that a write clears only those that came before it. */
  let doubts = 0;
  /** The last doubt was a deletion: the next try begins by putting the Lease back. */
  let gone = false;
  /** Something was sent, so that our name may stand there although no answer has said so. */
  let written = false;
  let predecessor: string | null = null;

  const writer = () => ({ self, times, now: clock.now() });
  const leads = () => heldUntil > -Infinity;

  /** One request, over in time for the deadline of a leader, whatever the store does. */
  const bounded = async <T>(request: (call: Call) => Promise<T>, signal: AbortSignal) => {
    const remaining = leads() ? heldUntil - clock.monotonic() : Infinity;
    using limit = clock.timeout(Math.max(0, Math.min(requestMs, remaining)));
    const either = AbortSignal.any([signal, limit.signal]);
    try {
      return await abortable(request({ signal: either }), either);
    } catch (error) {
      signal.throwIfAborted();
      if (!limit.signal.aborted) throw error;
      throw new LeaseError("unavailable", "Reach the Lease: no answer in time", { cause: error });
    }
  };

  const observe = (lease: StoredLease) => {
    vanishedAt = null;
    const { holder } = lease.record;
    if (holder !== "" && holder !== self) predecessor = holder;
    observed = observed !== null && sameRecord(observed.lease.record, lease.record)
      ? { ...observed, lease }
      : { lease, since: clock.monotonic(), changedAt: clock.now() };
  };

  const write = async (record: LeaseRecord, over: string | null, signal: AbortSignal) => {
    // Before the request: from its arrival on others wait, and that is later.
    const startedAt = clock.monotonic();
    const doubtsBefore = doubts;
    written = true;
    const lease = await bounded(
      (call) =>
        over === null
          ? store.create(record, deps.annotations, call)
          : store.update(over, record, deps.annotations, call),
      signal,
    );
    observe(lease);
    heldUntil = startedAt + times.renewDeadlineMs;
    // A doubt that came up meanwhile may be about what followed on this write.
    if (doubts === doubtsBefore) doubted = false;
  };

  /** There is no Lease: it is made, unless somebody who held it may not know yet that it was deleted. */
  const makeAnew = async (signal: AbortSignal): Promise<Attempt> => {
    const last = observed?.lease.record ?? null;
    const others = last !== null && last.holder !== "" && last.holder !== self;
    if (others) {
      vanishedAt ??= clock.monotonic();
      const until = vanishedAt + durationOf(last, times);
      if (clock.monotonic() < until) return { kind: "vanished", until };
    }
    const ours = last?.holder === self;
    await write(ours ? renewed(last, writer()) : takenOver(last, writer()), null, signal);
    return { kind: "held" };
  };

  /** Reads what stands there, and takes it over or renews it if the rules allow. */
  const look = async (signal: AbortSignal): Promise<Attempt> => {
    const before = observed?.lease.record ?? null;
    const current = await bounded((call) => store.read(call), signal);
    if (current === undefined) return await makeAnew(signal);
    observe(current);
    const { record, version } = current;
    if (record.holder === self) {
      await write(renewed(record, writer()), version, signal);
      return { kind: "held" };
    }
    const until = (observed?.since ?? clock.monotonic()) + durationOf(record, times);
    const alive = record.holder !== "" && clock.monotonic() < until;
    // Whoever has led meanwhile has raised the number.
    const replaced = record.holder !== "" || record.transitions !== before?.transitions;
    if (alive || leads() && replaced) return { kind: "taken", holder: record.holder, until };
    await write(takenOver(record, writer()), version, signal);
    return { kind: "held" };
  };

  /** Ours, and deleted: made anew without a look, before a client-go that waits finds none. */
  const putBack = async (signal: AbortSignal): Promise<boolean> => {
    const heard = gone;
    gone = false;
    if (!heard || !leads()) return false;
    try {
      return (await makeAnew(signal)).kind === "held";
    } catch {
      signal.throwIfAborted();
      return false; // It is there again, or was never gone.
    }
  };

  /** client-go's fast path: writes over what was seen last without a read. False: look first. */
  const renewAtOnce = async (signal: AbortSignal): Promise<boolean> => {
    if (observed === null) return false;
    const { record, version } = observed.lease;
    if (record.holder !== self) return false;
    if (clock.monotonic() >= observed.since + durationOf(record, times)) return false;
    try {
      await write(renewed(record, writer()), version, signal);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error)) doubted = true;
      return false;
    }
  };

  return {
    async attempt(signal) {
      signal.throwIfAborted();
      try {
        if (await putBack(signal) || await renewAtOnce(signal)) return { kind: "held" };
        return await look(signal);
      } catch (error) {
        signal.throwIfAborted();
        return { kind: "failed", error };
      }
    },
    heldUntil: () => heldUntil,
    doubt(deleted) {
      doubted = true;
      gone = deleted;
      doubts++;
    },
    doubted: () => doubted,
    forget() {
      heldUntil = -Infinity;
    },
    async release(signal) {
      heldUntil = -Infinity;
      while (written) {
        try {
          // Not what was seen last: an aborted renewal may have been stored all the same.
          const current = await bounded((call) => store.read(call), signal);
          if (current?.record.holder !== self) return;
          const record = released(current.record, clock.now());
          const none = Object.fromEntries(Object.keys(deps.annotations).map((key) => [key, null]));
          await bounded((call) => store.update(current.version, record, none, call), signal);
          return;
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof LeaseError && error.code === "refused") throw error;
          await clock.sleep(RELEASE_PAUSE_MS, signal);
        }
      }
    },
    predecessor: () => predecessor,
    seen: () => observed,
  };
}

function isConflict(error: unknown): boolean {
  return error instanceof LeaseError && error.code === "conflict";
}
