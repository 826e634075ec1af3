import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createHealthKeeper, type SourceHealth } from "../lib/source_health.ts";

/** Takes the outcome of each call of the scheduler at Gitea. */
export interface GiteaWatch {
  ok(): void;
  /** Also logs `scheduler error`: at once when it is a new one, else every 30 s with a count. */
  failed(error: unknown): void;
  status(): SourceHealth;
}

const REPEAT_LOG_MS = 30_000;

/** Makes a {@link GiteaWatch}. */
export function createGiteaWatch(clock: Clock, logger: Logger): GiteaWatch {
  const keeper = createHealthKeeper(clock);
  let logged = { text: "", at: -Infinity, unsaid: 0 };
  return {
    ok: keeper.ok,
    failed(thrown) {
      const now = clock.now();
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      keeper.failed(error);
      if (logged.text === error.message && now - logged.at < REPEAT_LOG_MS) {
        logged.unsaid += 1;
        return;
      }
      logger.error("scheduler error", { component: "scheduler", error, repeated: logged.unsaid });
      logged = { text: error.message, at: now, unsaid: 0 };
    },
    status: keeper.status,
  };
}
