import type { Config } from "../controller/config/config.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { startController } from "./controller.ts";
import { openPages } from "./pages.ts";
import { createSources } from "./sources.ts";
import { supplyParts } from "./parts.ts";

/** What `main.ts` has found out about the process. */
export interface ProgramContext {
  readonly version: string;
  /** The environment, for children that need some of it. */
  readonly env: Readonly<Record<string, string>>;
  readonly isRoot: boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** Says something to a person at the terminal; does nothing where there is none. */
  announce(text: string): void;
  /** Called once when the lead is lost: the process must soon end, whatever hangs. */
  onLost?(): void;
  /** Called when it cannot go on, before anything is closed: the process must soon end, whatever hangs. */
  onFailed?(error: unknown): void;
}

/**
 * Runs the whole program until `signal` aborts. Resolves after a clean stop; rejects with the reason
 * when it cannot go on. What was opened is closed in reverse order either way.
 */
export async function runProgram(
  config: Config,
  context: ProgramContext,
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger, version } = context;
  await using stack = new AsyncDisposableStack();
  // A restarted process of the same name is another contender.
  const self = `${config.hostname}_${crypto.randomUUID()}`;
  const sources = createSources(clock, { self, mode: config.leaderElection });
  const pages = stack.use(openPages({ config, version, sources, clock, logger }));
  logger.info("dashboard is up", { url: pages.url, profile: config.profile, version });
  const { recorder, views, actions, hints, signOuts } = pages;
  try {
    const parts = await supplyParts(config, { ...context, stack, sources, recorder }, signal);
    const around = { ...context, config, recorder, views, actions, hints, signOuts, sources };
    const controller = stack.use(await startController(parts, around, signal));
    logger.info("controller is up", { dashboard: pages.url, gitea: parts.gitea.url });
    const ending = config.profile === "embedded" ? "   Ctrl-C ends everything" : "";
    context.announce(`\n  The dashboard is at ${pages.url}${ending}\n\n`);
    await controller.run(signal);
  } catch (error) {
    // Stopped while it was still starting: nothing had been taken.
    if (!signal.aborted) {
      context.onFailed?.(error);
      throw error;
    }
  }
  logger.info("stopped", {});
}
