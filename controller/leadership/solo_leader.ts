import { createBell } from "../../lib/bell.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Call } from "../backend.ts";
import type { Leadership, LeadershipStatus } from "./leadership.ts";
import { QueueError } from "../queue.ts";
import type { Versioned } from "../records.ts";

/** What the leader writes into the key, again and again. */
export interface LeaderNote {
  /** Name of the process. */
  readonly holder: string;
  /** Of a place where only one process can live at a time (a locked STATE_DIR); null without one. */
  readonly place: string | null;
  /** Where its pages are reached; null when it has not said. */
  readonly address: string | null;
  /** The writer's clock, for people only. */
  readonly at: number;
}

/** One key that all controllers of a registration share. Methods wait while the store is away. */
export interface LeaderKey {
  /** What stands there; undefined when nobody leads. */
  read(call: Call): Promise<Versioned<LeaderNote> | undefined>;
  /** Writes over `revision` (0 = absent), resolves to the new one; `QueueError` `conflict` otherwise. */
  write(note: LeaderNote, revision: number, call: Call): Promise<number>;
  /** Removes it unless it was written after `revision`. */
  remove(revision: number, call: Call): Promise<void>;
  /** Calls back when it may have changed, until aborted. */
  watch(listener: () => void, signal: AbortSignal): void;
}

/** Times of {@link createSoloLeader}, milliseconds. */
export interface SoloTimes {
  /** Between the leader's writes. */
  readonly refreshMs: number;
  /** An unchanged key is a dead leader's after this. */
  readonly deadMs: number;
  /** Between looks of one that waits. */
  readonly lookMs: number;
  /** A process that did nothing for so long asks first whether it still leads. */
  readonly frozenMs: number;
}

/** `frozenMs` < `deadMs` - `refreshMs`: who slept long enough to be replaced knows it. */
const DEFAULT_SOLO_TIMES: SoloTimes = {
  refreshMs: 5_000,
  deadMs: 15_000,
  lookMs: 2_000,
  frozenMs: 8_000,
};

const TICK_MS = 1_000;
const RELEASE_MS = 1_000;

/**
 * Leadership without an elector (`LEADER_ELECTION=none`): meant for one process, so that its only
 * task is to notice a second one with the same registration.
 *
 * ```
 *            key absent, or of our own place, or unchanged for deadMs: write over what was seen
 *  waiting --------------------------------------------------------------> leading
 *     ^                                                                       | key is another's
 *     +------- another was faster                             onLost <--------+
 * ```
 * Rules of failure: nobody's clock counts but the observer's own, and only while it can look (a store
 * that was away proves nothing). While the store is away the leader goes on: nobody can replace it
 * there, and the epoch fences what it writes later.
 */
export function createSoloLeader(deps: {
  readonly key: LeaderKey;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of this process, unlike every other's. */
  readonly self: string;
  readonly place: string | null;
  /** Where our pages are reached; null when nobody was told. */
  readonly address?: string | null;
  /** Another process has taken over. */
  onLost(detail: string): void;
}, times = DEFAULT_SOLO_TIMES): Leadership {
  const { key, clock, self, place, address = null } = deps;
  const logger = deps.logger.child({ component: "leader" });
  let status: LeadershipStatus = {
    holder: null,
    leading: false,
    acquiredAt: null,
    renewedAt: null,
    leaseSeconds: times.deadMs / 1_000,
  };
  let revision = 0;
  let tick = clock.monotonic();
  let doubt = false;
  let wake = () => {};

  const note = (): LeaderNote => ({
    holder: self,
    place,
    address,
    at: clock.now(),
  });

  /** Writes over what was seen; false when somebody was faster. */
  const write = async (over: number, signal: AbortSignal): Promise<boolean> => {
    const startedAt = clock.monotonic();
    try {
      revision = await key.write(note(), over, { signal });
    } catch (error) {
      if (error instanceof QueueError && error.code === "conflict") return false;
      throw error;
    }
    const now = clock.now();
    const acquiredAt = status.leading ? status.acquiredAt : now;
    status = { ...status, holder: self, address, leading: true, acquiredAt, renewedAt: now };
    // The answer to a write from before the process was stopped says nothing of now.
    if (clock.monotonic() - startedAt < times.frozenMs) doubt = false;
    return true;
  };

  const lose = ({ holder, address }: LeaderNote) => {
    status = { ...status, holder, address, leading: false, acquiredAt: null };
    deps.onLost(`"${holder}" leads, with the same registration`);
  };

  /** One refresh; false when another leads. */
  const refresh = async (signal: AbortSignal): Promise<boolean> => {
    while (!(await write(revision, signal))) {
      const current = await key.read({ signal });
      if (current !== undefined && current.value.holder !== self) {
        lose(current.value);
        return false;
      }
      // Deleted by hand, or an earlier write of ours whose answer was lost.
      revision = current?.revision ?? 0;
    }
    return true;
  };

  const notice = () => {
    const now = clock.monotonic();
    if (now - tick >= times.frozenMs) {
      doubt = true;
      wake();
    }
    tick = now;
  };

  const keepTicking = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await clock.sleep(TICK_MS, signal).catch(() => {});
      notice();
    }
  };

  const keepWriting = async (signal: AbortSignal) => {
    using bell = createKeyBell(deps, signal);
    wake = bell.ring;
    let next = clock.monotonic() + times.refreshMs;
    while (true) {
      await bell.wait(Math.max(0, next - clock.monotonic()));
      if (signal.aborted) return;
      if (!doubt && clock.monotonic() < next) {
        const current = await key.read({ signal });
        if (current === undefined || current.value.holder === self) continue;
      }
      if (!(await refresh(signal))) return;
      next = clock.monotonic() + (doubt ? 0 : times.refreshMs);
    }
  };

  return {
    status: () => status,
    check() {
      notice();
      if (doubt) {
        throw new Error(
          "Act as the leader: this process was stopped and does not know if it leads",
        );
      }
    },
    async acquire(signal) {
      using bell = createKeyBell(deps, signal);
      let seen = { revision: 0, since: 0, lookedAt: 0 };
      while (true) {
        signal.throwIfAborted();
        const current = await key.read({ signal });
        const now = clock.monotonic();
        if (current === undefined) {
          if (await write(0, signal)) break;
          continue;
        }
        const { holder } = current.value;
        const ours = holder === self || (place !== null && current.value.place === place);
        if (current.revision !== seen.revision || now - seen.lookedAt > times.refreshMs) {
          seen = { revision: current.revision, since: now, lookedAt: now };
        }
        seen = { ...seen, lookedAt: now };
        const dead = now - seen.since >= times.deadMs;
        if (ours || dead) {
          if (!(await write(current.revision, signal))) continue;
          if (dead) logger.warn("a silent leader is replaced", { holder });
          break;
        }
        if (holder !== status.holder) {
          logger.warn("another controller leads, this one waits", { holder, self });
        }
        status = { ...status, holder, address: current.value.address, renewedAt: current.value.at };
        await bell.wait(times.lookMs);
      }
      tick = clock.monotonic();
      logger.info("leading", { self });
    },
    async hold(signal) {
      const end = new AbortController();
      const either = AbortSignal.any([signal, end.signal]);
      try {
        await Promise.all([
          keepTicking(either),
          keepWriting(either).finally(() => end.abort()),
        ]);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    async [Symbol.asyncDispose]() {
      if (!status.leading) return;
      status = { ...status, holder: null, address: null, leading: false, acquiredAt: null };
      using limit = clock.timeout(RELEASE_MS);
      try {
        // An aborted refresh may have been stored all the same: what stands there is what counts.
        const current = await key.read(limit);
        if (current?.value.holder === self) await key.remove(current.revision, limit);
      } catch (error) {
        logger.warn("leadership is not given back, the next one waits", { error });
      }
    },
  };
}

/** A bell that rings when the key may have changed. */
function createKeyBell(
  deps: { readonly key: LeaderKey; readonly clock: Clock },
  signal: AbortSignal,
) {
  const closing = new AbortController();
  const { ring, wait } = createBell(deps.clock);
  deps.key.watch(ring, AbortSignal.any([signal, closing.signal]));
  return {
    ring,
    wait: (ms: number) => wait(ms, signal),
    [Symbol.dispose]: () => closing.abort(),
  };
}
