import { parseArgs } from "node:util";
import { type Clock, systemClock } from "../lib/clock.ts";
import { Secret } from "../lib/secret.ts";
import { createApiClient, detailOf, UnreachableError } from "./ctl/client.ts";
import type { Line } from "./ctl/arguments.ts";
import type { CommandDeps } from "./ctl/command.ts";
import { COMMANDS, runCommand } from "./ctl/commands.ts";
import { EXIT, FLAG_OPTIONS, TEXT_OPTIONS, UsageError, usageText } from "./ctl/usage.ts";

/** What the tool touches. */
export interface CtlOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results. */
  readonly out: (text: string) => void;
  /** Everything else. */
  readonly err: (text: string) => void;
  /** Asks a person; null where there is none. */
  readonly ask: ((question: string) => string | null) | null;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  readonly fetch?: typeof globalThis.fetch;
}

const DEFAULT_URL = "http://127.0.0.1:8080";
/** The API's own words are for browsers and programs. */
const TOKEN_HINT =
  "ctl sends the token in ADMIN_TOKEN, or in the file that ADMIN_TOKEN_FILE names\n";

/**
 * Reads the command line, asks the JSON API, prints; resolves to the exit code. With `--json` stdout
 * gets exactly one JSON value, the API's own, also when it says no.
 */
export async function runCtl(args: readonly string[], options: CtlOptions): Promise<number> {
  const { out, err, signal } = options;
  try {
    const line = readLine(args);
    if (line === "help") {
      out(usageText(COMMANDS));
      return EXIT.done;
    }
    const json = line.flags.has("json");
    const conclude: CommandDeps["conclude"] = (answer, show) => {
      const code = exitCodeOf(answer.status);
      if (json) out(`${JSON.stringify(answer.body)}\n`);
      else if (code === EXIT.done) out(show(answer.body));
      else err(`${detailOf(answer)}\n${answer.status === 401 ? TOKEN_HINT : ""}`);
      return code;
    };
    const clock = options.clock ?? systemClock;
    const client = createApiClient({
      url: baseUrl(line.text.url ?? options.env.ADMIN_URL ?? DEFAULT_URL),
      token: await tokenOf(options.env),
      clock,
      signal,
      ...options.fetch === undefined ? {} : { fetch: options.fetch },
    });
    return await runCommand(line, { client, clock, signal, ask: options.ask, out, err, conclude });
  } catch (error) {
    if (error instanceof UsageError) {
      err(`${error.message}\nSee: deno task ctl --help\n`);
      return EXIT.usage;
    }
    if (!(error instanceof UnreachableError) && !signal.aborted) throw error;
    err(`${signal.aborted ? "Stopped" : (error as Error).message}\n`);
    return EXIT.failed;
  }
}

function readLine(args: readonly string[]): Line | "help" {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...Object.fromEntries(Object.keys(TEXT_OPTIONS).map((name) => [name, TEXT])),
        ...Object.fromEntries(Object.keys(FLAG_OPTIONS).map((name) => [name, FLAG])),
      },
    });
  } catch (error) {
    throw new UsageError(
      `Cannot read the command line: ${error instanceof Error ? error.message : error}`,
    );
  }
  const { values, positionals } = parsed;
  const [command, ...rest] = positionals;
  if (values.help === true || command === "help") return "help";
  if (command === undefined) throw new UsageError("Choose a command");
  const text: Record<string, string> = {};
  const flags = new Set<string>();
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "string") text[name] = value;
    else if (value === true) flags.add(name);
  }
  return { command, args: rest, text, flags };
}

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean" } as const;

function exitCodeOf(status: number): number {
  if (status < 300) return EXIT.done;
  if (status === 401 || status === 403) return EXIT.forbidden;
  if (status === 404) return EXIT.notFound;
  if (status === 409 || status === 412 || status === 422) return EXIT.refused;
  return status === 400 ? EXIT.usage : EXIT.failed;
}

function baseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageError(`Set ADMIN_URL, or --url, to an http(s) URL: "${text}" is none`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

async function tokenOf(env: CtlOptions["env"]): Promise<Secret | null> {
  const { ADMIN_TOKEN: token, ADMIN_TOKEN_FILE: file } = env;
  if (token !== undefined && token !== "") return new Secret(token);
  if (file === undefined || file === "") return null;
  try {
    return new Secret((await Deno.readTextFile(file)).trim());
  } catch (error) {
    throw new UsageError(`Cannot read ADMIN_TOKEN_FILE "${file}": ${error}`);
  }
}

if (import.meta.main) {
  const print = (to: typeof Deno.stdout | typeof Deno.stderr) => (text: string) => {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += to.writeSync(bytes.subarray(at));
  };
  const stop = new AbortController();
  Deno.addSignalListener("SIGINT", () => stop.abort());
  Deno.exitCode = await runCtl(Deno.args, {
    env: Deno.env.toObject(),
    out: print(Deno.stdout),
    err: print(Deno.stderr),
    ask: Deno.stdin.isTerminal() ? (question) => prompt(question) : null,
    signal: stop.signal,
  });
  // The listener would keep the process.
  Deno.exit();
}
