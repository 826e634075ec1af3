import { configureSync, getLogger, type LogRecord, type Sink } from "@logtape/logtape";
import type { Fields, Logger } from "../../lib/logger.ts";
import { formatJson, formatPretty, type LogEntry } from "./format.ts";
import { writeStderr } from "./stderr.ts";

/** How the log looks and where it goes. */
export interface LoggerOptions {
  readonly level: "debug" | "info" | "warn" | "error";
  /** `json`: lines for machines; `pretty`: for people. */
  readonly format: "json" | "pretty";
  /** Takes one whole line; must not throw. Default: stderr, synchronously. */
  readonly write?: (line: string) => void;
  /** Colours of `pretty`; default: when stderr is a terminal. */
  readonly colours?: boolean;
  /** Milliseconds since the epoch; default: the machine's clock. */
  readonly now?: () => number;
}

const LEVELS = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;
const NAMES = {
  trace: "DEBUG",
  debug: "DEBUG",
  info: "INFO",
  warning: "WARN",
  error: "ERROR",
  fatal: "ERROR",
} as const;

/** LogTape routes by category and is configured as a whole: every logger made here is one route. */
interface Route {
  readonly category: readonly ["gdr", string];
  readonly lowestLevel: (typeof LEVELS)[keyof typeof LEVELS];
  readonly sink: Sink;
}
const routes: Route[] = [];

/**
 * Makes the program's logger. What it writes holds no secret (see `redact.ts`), and no value can
 * forge a record: one call is one line. Writing is synchronous, so the last words before an exit are
 * not lost. Never throws.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { level, format, write = writeStderr, now } = options;
  const colours = options.colours ?? Deno.stderr.isTerminal();
  const sink = (record: LogRecord) => {
    const entry: LogEntry = {
      at: now?.() ?? record.timestamp,
      level: NAMES[record.level],
      message: typeof record.rawMessage === "string"
        ? record.rawMessage
        : record.rawMessage.join(""),
      fields: record.properties,
    };
    write(format === "json" ? formatJson(entry) : formatPretty(entry, { colours }));
  };
  const category = ["gdr", String(routes.length)] as const;
  routes.push({ category, lowestLevel: LEVELS[level], sink });
  configure();
  return adapt(getLogger(category), {});
}

function configure(): void {
  const sinks: Record<string, Sink> = {};
  for (const { category, sink } of routes) sinks[category[1]] = sink;
  configureSync({
    reset: true,
    sinks,
    loggers: [
      // LogTape's own words about broken sinks: ours do not throw.
      { category: ["logtape", "meta"], sinks: [], lowestLevel: "error" },
      ...routes.map(({ category, lowestLevel }) => ({
        category: [...category],
        sinks: [category[1]],
        lowestLevel,
      })),
    ],
  });
}

function adapt(logger: ReturnType<typeof getLogger>, fixed: Fields): Logger {
  return {
    debug: (message, fields) => logger.debug(message, { ...fixed, ...fields }),
    info: (message, fields) => logger.info(message, { ...fixed, ...fields }),
    warn: (message, fields) => logger.warn(message, { ...fixed, ...fields }),
    error: (message, fields) => logger.error(message, { ...fixed, ...fields }),
    child: (fields) => adapt(logger, { ...fixed, ...fields }),
  };
}
