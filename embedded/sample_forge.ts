import { readAtMost } from "../lib/bytes.ts";
import type { Clock } from "../lib/clock.ts";
import { objectOrEmpty } from "../lib/json_object.ts";
import { Secret } from "../lib/secret.ts";
import { FORGE_VERSION } from "./forge/pages.ts";
import { openStateDirectory } from "./state_directory.ts";
import type { Child, Supervisor } from "./supervisor.ts";

/** A running sample forge. */
export interface SampleForge {
  /** Its base URL as jobs see it. */
  readonly url: string;
  readonly registrationToken: Secret;
  readonly child: Child;
}

const POLL_MS = 50;

/**
 * Starts the sample forge as a child process on `port`; resolves once it answers. Rejects with
 * `ChildError`, also when another program holds the port, or with the signal's reason.
 */
export async function startForge(options: {
  readonly directory: string;
  readonly port: number;
  /** Environment of this process; what Deno needs of it is passed on. */
  readonly env: Readonly<Record<string, string>>;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}): Promise<SampleForge> {
  const { port, supervisor, clock, signal } = options;
  const directory = await openStateDirectory(options.directory);
  const program = new URL("./forge/main.ts", import.meta.url);
  const config = new URL("../deno.json", import.meta.url).pathname;
  const child = await supervisor.start({
    name: "forge",
    command: [
      Deno.execPath(),
      "run",
      "-A",
      "--config",
      config,
      program.pathname,
      "--state",
      directory,
      "--port",
      String(port),
    ],
    env: needed(options.env),
    ready: (waiting) => answers(port, clock, waiting),
  }, { signal });
  for (const line of (await child.lastLines()).toReversed()) {
    const ready = parse(line);
    if (ready !== undefined) return { ...ready, child };
  }
  throw new Error("Start the sample forge: it answers, but has not told its registration token");
}

/** What Deno itself needs to find its cache, and nothing else. */
function needed(env: Readonly<Record<string, string>>): Record<string, string> {
  const names = ["HOME", "DENO_DIR", "PATH", "TMPDIR"];
  return Object.fromEntries(Object.entries(env).filter(([name]) => names.includes(name)));
}

/** Resolves once it is the forge that answers: another program may hold the port. */
async function answers(port: number, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!(await isForge(`http://127.0.0.1:${port}/api/v1/version`, signal))) {
    await clock.sleep(POLL_MS, signal);
  }
}

async function isForge(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(url, { redirect: "error", signal });
    const bytes = await readAtMost(response.body ?? [], 1_000);
    return new TextDecoder().decode(bytes) === JSON.stringify({ version: FORGE_VERSION });
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

function parse(line: string): { url: string; registrationToken: Secret } | undefined {
  try {
    const { url, registrationToken: token } = objectOrEmpty(JSON.parse(line));
    return typeof url === "string" && typeof token === "string"
      ? { url, registrationToken: new Secret(token) }
      : undefined;
  } catch {
    return undefined; // Not the line that tells.
  }
}
