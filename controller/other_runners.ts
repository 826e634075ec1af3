import type { Logger } from "../lib/logger.ts";
import type { Call } from "./backend.ts";

/** A runner that is registered at Gitea. */
export interface RegisteredRunner {
  readonly id: string;
  readonly name: string;
  readonly labels: readonly string[];
}

/** Gitea's runners, as far as the token of `GITEA_API_TOKEN` may see. Throws `GiteaError`. */
export interface RegisteredRunners {
  /** Null when the token may not list them all. */
  runners(call: Call): Promise<readonly RegisteredRunner[] | null>;
}

const SHOWN = 10;

/**
 * With `DEFAULT_BACKEND` we take jobs that say only `self-hosted`. Warns when other runners carry that
 * label too, because jobs that were meant for them may come to us. `ours` is our runner's id
 * at Gitea. Never rejects: it is only advice.
 */
export async function warnOfOthers(
  deps: { readonly runners: RegisteredRunners; readonly ours: string; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  const logger = deps.logger.child({ component: "scheduler" });
  try {
    const all = await deps.runners.runners({ signal });
    if (all === null) {
      logger.info("other runners at Gitea cannot be listed", {
        detail: "GITEA_API_TOKEN is not of an administrator with the scope read:admin",
      });
      return;
    }
    const others = all.filter(({ id, labels }) =>
      id !== deps.ours && labels.includes("self-hosted")
    );
    if (others.length === 0) return;
    logger.warn("other runners carry the label self-hosted", {
      runners: others.slice(0, SHOWN).map(({ name }) => name),
      count: others.length,
      detail: "with DEFAULT_BACKEND set, jobs that say only self-hosted may come here instead: " +
        "give those runners and jobs a label of their own, or unset DEFAULT_BACKEND",
    });
  } catch (error) {
    if (!signal.aborted) logger.warn("other runners at Gitea cannot be listed", { error });
  }
}
