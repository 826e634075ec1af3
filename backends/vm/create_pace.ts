import { BackendError, type Call } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { oneLine } from "../../lib/one_line.ts";
import type { SandboxError, SandboxErrorCode } from "./sandboxes.ts";

/**
 * Lets creates at one pool pass, a few a second, and none for a while after the pool or its server
 * has failed: what fails for one fails for all.
 *
 * ```
 *  open -- full, away, refused --> resting -- time over --> one is tried -- it works --> open
 *                                     ^                          |
 *                                     +------ it fails, twice as long
 * ```
 */
export interface CreatePace {
  /**
   * Waits for its turn. Rejects with a {@link BackendError} that says that nothing was made while the
   * pool rests, and with the signal's reason.
   */
  take(action: string, call: Call): Promise<Attempt>;
  /** One of ours has gone: a pool that was full is asked at once. */
  freed(): void;
}

/** One create; exactly one of these is called. */
export interface Attempt {
  succeeded(): void;
  failed(error: SandboxError): void;
  /** Nothing was asked after all. */
  dropped(): void;
}

/** What {@link createPace} needs. */
export interface PaceOptions {
  readonly pool: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Default 2. */
  readonly perSecond?: number;
}

const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;

interface Rest {
  readonly error: SandboxError;
  readonly failures: number;
  until: number;
}

/** Makes {@link CreatePace}. */
export function createPace(options: PaceOptions): CreatePace {
  const { pool, clock, logger } = options;
  const spacingMs = 1000 / (options.perSecond ?? 2);
  let nextAt = -Infinity;
  let rest: Rest | null = null;
  let trying = false;

  const resting = (action: string, { error, until }: Rest) => {
    const seconds = Math.max(1, Math.ceil((until - clock.monotonic()) / 1000));
    const message = `${action}: not tried: pool "${pool}" is asked again in ${seconds} s: `;
    return new BackendError(
      FULL.has(error.code) ? "quota" : "refused",
      message + oneLine(error.message, 400),
      { cause: error },
    );
  };

  const failed = (error: SandboxError, isTrial: boolean) => {
    const now = clock.monotonic();
    // Of several that were under way together only the first makes it longer.
    const failures = (rest?.failures ?? 0) + (rest === null || isTrial ? 1 : 0);
    const ms = Math.max(
      error.retryAfterMs ?? 0,
      Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(failures - 1, 10)),
    );
    if (rest === null) {
      logger.warn("sandboxes are not asked for", { pool, code: error.code, ms, error });
    }
    rest = { error, failures, until: Math.max(rest?.until ?? 0, now + ms) };
  };

  const worked = () => {
    if (rest !== null) logger.info("sandboxes are asked for again", { pool });
    rest = null;
  };

  return {
    async take(action, { signal }) {
      const isTrial = rest !== null;
      if (rest !== null) {
        if (trying || clock.monotonic() < rest.until) throw resting(action, rest);
        trying = true;
      }
      const now = clock.monotonic();
      const at = Math.max(now, nextAt);
      nextAt = at + spacingMs;
      try {
        if (at > now) await clock.sleep(at - now, signal);
        signal.throwIfAborted();
        // Those before it have found out meanwhile.
        if (rest !== null && !isTrial) throw resting(action, rest);
      } catch (error) {
        if (isTrial) trying = false;
        throw error;
      }
      return {
        succeeded() {
          if (isTrial) trying = false;
          worked();
        },
        failed(error) {
          if (isTrial) trying = false;
          if (OF_ONE.has(error.code)) worked();
          else failed(error, isTrial);
        },
        dropped() {
          if (isTrial) trying = false;
        },
      };
    },
    freed() {
      if (rest !== null && FULL.has(rest.error.code)) rest.until = clock.monotonic();
    },
  };
}

const FULL: ReadonlySet<SandboxErrorCode> = new Set(["pool_full", "quota", "start_timeout"]);
/** These say nothing about others. */
const OF_ONE: ReadonlySet<SandboxErrorCode> = new Set(["invalid", "start_failed"]);
