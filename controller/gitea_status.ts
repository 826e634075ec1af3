import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";

/** How Gitea has answered lately. Times are milliseconds since the epoch. */
export interface GiteaStatus {
  /** `degraded`: the last call failed, but one succeeded less than 10 s ago. */
  readonly state: "unknown" | "up" | "degraded" | "down";
  readonly since: number;
  /** Kept for a minute after things went well again; null if there is none. */
  readonly lastError: string | null;
  readonly lastOkAt: number | null;
}

/** Takes the outcome of each call of the scheduler at Gitea. */
export interface GiteaWatch {
  ok(): void;
  /** Also logs `scheduler error`: at once when it is a new one, else every 30 s with a count. */
  failed(error: unknown): void;
  status(): GiteaStatus;
}

const FRESH_MS = 10_000;
const KEEP_ERROR_MS = 60_000;
const REPEAT_LOG_MS = 30_000;

/** Makes a {@link GiteaWatch}. */
export function createGiteaWatch(clock: Clock, logger: Logger): GiteaWatch {
  let okAt: number | null = null;
  let failedAt: number | null = null;
  let text: string | null = null;
  let healthySince = clock.now();
  let failingSince: number | null = null;
  let logged = { text: "", at: -Infinity, unsaid: 0 };
  const start = clock.now();
  return {
    ok() {
      const now = clock.now();
      if (okAt === null || failingSince !== null) healthySince = now;
      failingSince = null;
      okAt = now;
    },
    failed(error) {
      const now = clock.now();
      failingSince ??= now;
      failedAt = now;
      text = error instanceof Error ? error.message : String(error);
      if (logged.text === text && now - logged.at < REPEAT_LOG_MS) {
        logged.unsaid += 1;
        return;
      }
      logger.error("scheduler error", { component: "scheduler", error, repeated: logged.unsaid });
      logged = { text, at: now, unsaid: 0 };
    },
    status() {
      const now = clock.now();
      const lastError = failingSince !== null || now - (failedAt ?? 0) < KEEP_ERROR_MS
        ? text
        : null;
      const common = { lastError, lastOkAt: okAt };
      if (failingSince === null) {
        return okAt === null
          ? { state: "unknown", since: start, ...common }
          : { state: "up", since: healthySince, ...common };
      }
      const downFrom = okAt === null ? failingSince : okAt + FRESH_MS;
      return now < downFrom
        ? { state: "degraded", since: failingSince, ...common }
        : { state: "down", since: Math.max(downFrom, failingSince), ...common };
    },
  };
}
