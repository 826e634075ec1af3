import { abortable } from "../../lib/abortable.ts";
import { createBell } from "../../lib/bell.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Call } from "../backend.ts";
import { QueueError } from "../queue.ts";

/** Sessions that were ended before their time. Nobody can make a session of what is here. */
export interface EndedSessions {
  /** Until when each would have lasted (milliseconds since the epoch), by the hash of its id. */
  readonly ended: ReadonlyMap<string, number>;
  /**
   * Whatever session lasts no longer than this is over, too: entries of such have made room. So a full
   * list never lets anybody in again; at worst somebody signs in once more.
   */
  readonly floor: number;
}

/** What stands in the store, and where it stood when it was read (0 = nowhere). */
export interface StoredSignOuts extends EndedSessions {
  readonly revision: number;
}

/** Where replicas tell each other; all methods wait while the server is away. */
export interface SignOutStore {
  /** Reads the list from the server; an empty one when there is none. */
  read(call: Call): Promise<StoredSignOuts>;
  /** Writes it over `revision`; rejects with `QueueError` `conflict` when another has written since. */
  write(list: StoredSignOuts, call: Call): Promise<void>;
  /** Calls back when somebody may have written, and after each connect, until aborted. */
  hint(listener: () => void, signal: AbortSignal): void;
}

/** How far a sign-out reaches: `shared` is stored for every replica, `here` holds at this one. */
export type Reach = "shared" | "here";

/** Which sessions are over, at this replica and at all others. */
export interface SignOuts {
  /** Whether the session of that hash, which would last until `endsAt`, was ended. */
  has(hash: string, endsAt: number): boolean;
  /**
   * Ends a session: at once here, and for all as soon as it is stored. Resolves after 2 s at the latest;
   * with `here` it is shared later, when the store answers while this process lives. Never rejects.
   */
  end(hash: string, endsAt: number): Promise<Reach>;
  /** Shares with the other replicas by `store` until disposed. */
  share(store: SignOutStore): AsyncDisposable;
}

/** Some 300 KB of JSON: below what nats-server takes by default. */
const MAX_HASHES = 5_000;
/** Somebody looks at a blank page meanwhile. */
const PATIENCE_MS = 2_000;
/** Hints can be lost, and entries grow old. */
const AGAIN_MS = 60_000;
/** A replica whose clock is behind still takes a session that is over for the others. */
const SLACK_MS = 600_000;

/**
 * Makes {@link SignOuts}.
 *
 * ```
 * end() --> remembered here --> read, joined, written over the revision --> hint at every replica --> read
 *                                        ^---- another was faster ----|
 * ```
 * While the store is away it stays remembered here and is written when that is back. A process that has
 * not read the list yet takes every session for a living one: there is nothing to act on by then either.
 */
export function createSignOuts(
  { clock, logger: root }: { readonly clock: Clock; readonly logger: Logger },
): SignOuts {
  const logger = root.child({ component: "access" });
  const bell = createBell(clock);
  const ended = new Map<string, number>();
  const unshared = new Map<string, PromiseWithResolvers<void>>();
  let floor = 0;
  let sharing = false;

  const tidy = () => {
    const over = clock.now() - SLACK_MS;
    for (const [hash, endsAt] of ended) if (endsAt <= over) ended.delete(hash);
    if (ended.size <= MAX_HASHES) return;
    const byEnd = [...ended].sort(([, a], [, b]) => a - b);
    for (const [hash, endsAt] of byEnd.slice(0, byEnd.length - MAX_HASHES)) {
      ended.delete(hash);
      floor = Math.max(floor, endsAt);
    }
  };

  /** What others have written is taken over; what they do not have is written. */
  const exchange = async (store: SignOutStore, signal: AbortSignal): Promise<void> => {
    const stored = await store.read({ signal });
    for (const [hash, endsAt] of stored.ended) ended.set(hash, endsAt);
    floor = Math.max(floor, stored.floor);
    tidy();
    const told = [...unshared];
    if (!same(stored, { ended, floor })) {
      await store.write({ ended: new Map(ended), floor, revision: stored.revision }, { signal });
    }
    for (const [hash, { resolve }] of told) {
      unshared.delete(hash);
      resolve();
    }
    if (told.length > 0) logger.info("sign-outs shared", { count: told.length });
  };

  const run = async (store: SignOutStore, signal: AbortSignal): Promise<void> => {
    store.hint(bell.ring, signal);
    while (!signal.aborted) {
      try {
        await exchange(store, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof QueueError && error.code === "conflict") continue;
        logger.error("sign-outs cannot be shared", { error });
      }
      await bell.wait(AGAIN_MS, signal);
    }
  };

  return {
    has: (hash, endsAt) => endsAt <= floor || ended.has(hash),
    async end(hash, endsAt) {
      ended.set(hash, endsAt);
      tidy();
      const told = unshared.get(hash) ?? Promise.withResolvers<void>();
      unshared.set(hash, told);
      const [oldest] = unshared.keys();
      // Its session is below the floor by now, and that is shared.
      if (unshared.size > MAX_HASHES && oldest !== undefined) unshared.delete(oldest);
      if (!sharing) return "here";
      bell.ring();
      using patience = clock.timeout(PATIENCE_MS);
      return await abortable(told.promise, patience.signal).then(
        () => "shared" as const,
        () => "here" as const,
      );
    },
    share(store) {
      const stop = new AbortController();
      sharing = true;
      const running = run(store, stop.signal);
      return {
        async [Symbol.asyncDispose]() {
          sharing = false;
          stop.abort();
          await running;
          const count = unshared.size;
          if (count > 0) logger.warn("sign-outs end with this process", { count });
        },
      };
    },
  };
}

function same(a: EndedSessions, b: EndedSessions): boolean {
  return a.floor === b.floor && a.ended.size === b.ended.size &&
    [...a.ended.keys()].every((hash) => b.ended.has(hash));
}
