/**
 * gitea-dynamic-runner: ONE permanent runner at Gitea that makes a one-shot executor for each job.
 *
 * The composition root: the only place that reads the environment. Exit codes: 0 stopped, 1 cannot
 * go on, 2 wrong configuration, 3 leadership lost.
 */
import { hostname } from "node:os";
import { createLogger } from "./clients/logtape/logger.ts";
import { writeStderr } from "./clients/logtape/stderr.ts";
import { parseConfig } from "./controller/config/parse.ts";
import { CONFIG_EXIT_CODE, formatFaults } from "./controller/config/report.ts";
import { hangupIgnored, npxEnded } from "./embedded/launcher.ts";
import { systemClock } from "./lib/clock.ts";
import { LeadershipLost } from "./wiring/leading.ts";
import { runProgram } from "./wiring/program.ts";
import settings from "./deno.json" with { type: "json" };

const EXIT = { stopped: 0, failed: 1, leadershipLost: 3 };
/** A stop takes 12 s at most; longer than this, something hangs. */
const STOP_MS = 30_000;
/** What was fetched is stored within 10 s; everything else has ended by then. */
const LOST_MS = 15_000;

async function main(): Promise<number> {
  const env = Deno.env.toObject();
  const isRoot = Deno.uid() === 0;
  const parsed = parseConfig(env, {
    readFile: (path) => Deno.readTextFileSync(path),
    hostname: hostname(),
    isRoot,
    isTerminal: Deno.stderr.isTerminal(),
  });
  if (parsed.kind === "faults") {
    writeStderr(formatFaults(parsed.faults, parsed.warnings));
    return CONFIG_EXIT_CODE;
  }
  const { config } = parsed;
  const logger = createLogger(config.log);
  for (const warning of parsed.warnings) logger.warn("configuration", { detail: warning });

  const announce = config.log.format === "pretty" ? writeStderr : () => {};

  const stop = new AbortController();
  const end = (why: string) => {
    if (stop.signal.aborted) return;
    logger.info("stopping", { why });
    stop.abort(new DOMException(`Stopped: ${why}`, "AbortError"));
    endWithin(STOP_MS, EXIT.failed);
  };
  /** Whoever waits for this one to end must not wait for a server that does not answer. */
  const endWithin = (ms: number, code: number, error: unknown = `not ended in ${ms} ms`) => {
    Deno.unrefTimer(setTimeout(() => {
      logger.error("runner stopped", { component: "scheduler", error });
      Deno.exit(code);
    }, ms));
  };
  const signals: Deno.Signal[] = ["SIGINT", "SIGTERM"];
  // The terminal was closed; under nohup that is meant to change nothing.
  if (!await hangupIgnored()) signals.push("SIGHUP");
  for (const name of signals) Deno.addSignalListener(name, () => end(name));
  if (config.profile === "embedded") {
    npxEnded({ clock: systemClock, signal: stop.signal }).then(() => end("npx has ended"));
  }
  let exitCode = EXIT.stopped;
  /** A fault that nobody caught. Dying of it at once would leave the children running. */
  const unexpected = (event: Event, error: unknown) => {
    event.preventDefault();
    if (isLostConnection(error)) return logger.warn("connection lost", { error });
    logger.error("runner stopped", { component: "scheduler", error });
    exitCode = EXIT.failed;
    end("an unexpected failure");
  };
  globalThis.addEventListener("unhandledrejection", (event) => unexpected(event, event.reason));
  globalThis.addEventListener("error", (event) => unexpected(event, event.error));
  try {
    await runProgram(config, {
      version: settings.version,
      env,
      isRoot,
      clock: systemClock,
      random: Math.random,
      logger,
      announce,
      onLost: () => endWithin(LOST_MS, EXIT.leadershipLost),
      onFailed: (error) => endWithin(STOP_MS, EXIT.failed, error),
    }, stop.signal);
    return exitCode;
  } catch (error) {
    logger.error("runner stopped", { component: "scheduler", error });
    announce(`\n  ${readable(error)}\n\n`);
    return error instanceof LeadershipLost ? EXIT.leadershipLost : EXIT.failed;
  }
}

/**
 * A socket that failed while its library did not listen: `nats` takes its listeners away for a moment
 * whenever it connects. The library hears of the end all the same.
 */
function isLostConnection(error: unknown): boolean {
  return error instanceof Error && "code" in error &&
    (error.code === "ECONNRESET" || error.code === "EPIPE");
}

/** An error's message for a terminal: what others may have put into it cannot steer the terminal. */
function readable(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, " ");
}

if (import.meta.main) Deno.exit(await main());
