import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";

/** One script to run. */
export interface Script {
  readonly text: string;
  /** `bash`, `sh`, or a command with `{0}` for the script's file. */
  readonly shell: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Folder for the script's file. */
  readonly temp: string;
  readonly onLine: (line: string) => Promise<void>;
}

/**
 * Runs a script and resolves to its exit code; its output, both streams together, goes to `onLine`.
 * When the signal aborts its process group is killed. Rejects when the shell cannot be started.
 */
export async function runScript(
  script: Script,
  { signal, clock }: { readonly signal: AbortSignal; readonly clock: Clock },
): Promise<number> {
  const file = `${script.temp}/step-${crypto.randomUUID()}.sh`;
  await Deno.writeTextFile(file, `${script.text}\n`, { mode: 0o700 });
  const words = commandOf(script.shell).map((word) => word.replaceAll("{0}", file));
  const child = new Deno.Command("/bin/sh", {
    // One pipe for both streams keeps their order.
    args: ["-c", 'exec "$@" 2>&1', "step", ...words],
    env: { ...script.env },
    clearEnv: true,
    cwd: script.cwd,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
    detached: true,
  }).spawn();
  const kill = () => {
    try {
      Deno.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended already.
    }
  };
  const killing = onAbort(signal, kill);
  try {
    const reader = child.stdout.getReader();
    const printing = readLines(reader, script.onLine);
    const { code } = await child.status;
    // What the step left running may hold the pipe open: its last words get a second.
    using patience = clock.timeout(LAST_WORDS_MS);
    onAbort(patience.signal, () => {
      kill();
      reader.cancel().catch(() => {});
    });
    await printing;
    kill();
    return code;
  } finally {
    killing[Symbol.dispose]();
    await Deno.remove(file);
  }
}

const LAST_WORDS_MS = 1000;
/** Of a line; Gitea keeps 64 KiB. A step may print for ever without ending its line. */
const MAX_LINE = 1024 * 1024;
const BASH = "/bin/bash";

function commandOf(shell: string | undefined): string[] {
  if (shell !== undefined && shell.includes("{0}")) return shell.split(/\s+/);
  if (shell === "sh" || (shell === undefined && !exists(BASH))) return ["/bin/sh", "-e", "{0}"];
  if (shell === undefined || shell === "bash") {
    return [BASH, "--noprofile", "--norc", "-e", "-o", "pipefail", "{0}"];
  }
  return [shell, "{0}"];
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

async function readLines(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  onLine: (line: string) => Promise<void>,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) await onLine(line.replace(/\r$/, ""));
  }
  if (rest !== "") await onLine(rest);
}
