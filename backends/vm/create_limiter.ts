import { BackendError, type Call } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { oneLine } from "../../lib/one_line.ts";
import type { SandboxError, SandboxErrorCode } from "./sandboxes.ts";

/**
 * Rate limit and circuit breaker of creates at one pool: a few a second pass, and none for a while after
 * the pool or its server has failed, because what fails for one fails for all.
 *
 * ```
 *  open -- a create fails --> resting -- time over, or one of ours has gone --> one is tried
 *   ^                          ^   ^                                               |
 *   |                          |   +-- it comes to nothing ------------------------+
 *   |                          +------ it fails: twice as long --------------------+
 *   +--------------------------------- it works -----------------------------------+
 * ```
 * A create that was let through before the rest opens it, too, when it works, and lengthens the rest by
 * no more than the server asks for when it fails.
 */
export interface CreateLimiter {
  /**
   * Waits for its turn. Rejects with a {@link BackendError} that says that nothing was made while the
   * pool rests, and with the signal's reason.
   */
  take(action: string, call: Call): Promise<CreatePermit>;
  /** One of ours has gone: a pool that was full is asked at once. */
  freed(): void;
}

/** Leave for one create; exactly one of these is called. */
export interface CreatePermit {
  succeeded(): void;
  failed(error: SandboxError): void;
  /** Nothing was asked after all. */
  dropped(): void;
}

/** What {@link createCreateLimiter} needs. */
export interface CreateLimiterOptions {
  readonly pool: string;
  readonly perSecond: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;

/** Why creates do not pass, and until when. */
interface Rest {
  readonly error: SandboxError;
  /** In a row, those that were under way together counted once. */
  readonly failures: number;
  readonly until: number;
}

type State =
  | { readonly kind: "open" }
  | Rest & { readonly kind: "resting" }
  | Rest & { readonly kind: "trying"; readonly trial: symbol };

/** Makes {@link CreateLimiter}. */
export function createCreateLimiter(options: CreateLimiterOptions): CreateLimiter {
  const { pool, clock, logger } = options;
  const spacingMs = 1000 / options.perSecond;
  let nextAt = -Infinity;
  let state: State = { kind: "open" };

  const refuse = (action: string, { error, until }: Rest): BackendError => {
    const seconds = Math.max(1, Math.ceil((until - clock.monotonic()) / 1000));
    const message = `${action}: not tried: pool "${pool}" is asked again in ${seconds} s: `;
    return new BackendError(
      FULL.has(error.code) ? "quota" : "refused",
      message + oneLine(error.message, 400),
      { cause: error },
    );
  };

  /** Lets a create in, one at a time after a rest. */
  const enter = (action: string, permit: symbol) => {
    if (state.kind === "open") return;
    if (state.kind === "trying" || clock.monotonic() < state.until) throw refuse(action, state);
    state = { ...state, kind: "trying", trial: permit };
  };

  const isTrial = (permit: symbol) => state.kind === "trying" && state.trial === permit;

  /** The trial is over without a word about the pool. */
  const leave = (permit: symbol) => {
    if (state.kind !== "trying" || state.trial !== permit) return;
    const { error, failures, until } = state;
    state = { kind: "resting", error, failures, until };
  };

  const open = () => {
    if (state.kind !== "open") logger.info("sandboxes are asked for again", { pool });
    state = { kind: "open" };
  };

  const rest = (permit: symbol, error: SandboxError) => {
    const now = clock.monotonic();
    const before = state.kind === "open" ? { failures: 0, until: 0 } : state;
    // Of several that were under way together only the first makes it longer.
    const counts = state.kind === "open" || isTrial(permit);
    const failures = before.failures + (counts ? 1 : 0);
    const ms = Math.max(
      error.retryAfterMs ?? 0,
      Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(failures - 1, 10)),
    );
    if (state.kind === "open") {
      logger.warn("sandboxes are not asked for", { pool, code: error.code, ms, error });
    }
    const next: Rest = { error, failures, until: Math.max(before.until, now + ms) };
    leave(permit);
    state = state.kind === "trying" ? { ...state, ...next } : { kind: "resting", ...next };
  };

  return {
    async take(action, { signal }) {
      const permit = Symbol(action);
      enter(action, permit);
      const now = clock.monotonic();
      const at = Math.max(now, nextAt);
      nextAt = at + spacingMs;
      try {
        if (at > now) await clock.sleep(at - now, signal);
        signal.throwIfAborted();
        // Those before it have found out meanwhile.
        if (state.kind !== "open" && !isTrial(permit)) throw refuse(action, state);
      } catch (error) {
        leave(permit);
        throw error;
      }
      return {
        succeeded: open,
        failed(error) {
          if (OF_ONE.has(error.code)) open();
          else rest(permit, error);
        },
        dropped: () => leave(permit),
      };
    },
    freed() {
      if (state.kind === "open" || !FULL.has(state.error.code)) return;
      state = { ...state, until: clock.monotonic() };
    },
  };
}

const FULL: ReadonlySet<SandboxErrorCode> = new Set(["pool_full", "quota", "start_timeout"]);
/** These say nothing about others: the pool and its server have done their part. */
const OF_ONE: ReadonlySet<SandboxErrorCode> = new Set(["invalid", "start_failed"]);
