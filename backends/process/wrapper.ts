import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import { type ProcessRef, readStat, signalProcess } from "./proc.ts";

/**
 * The small shell around each executor. It is the leader of the executor's session, outlives the
 * controller and notes the exit code. Three properties matter:
 *
 * - The environment comes by standard input and is read by the child just before it becomes the
 *   executor's program, so neither the disk nor the shell's own memory or environment ever holds the
 *   capability (a step of the same user can read those).
 * - Without the last line of that input nothing is started: a controller that dies between making the
 *   shell and writing meta.json leaves nothing that runs.
 * - SIGTERM goes to the whole group; the shell itself stays until its child has ended.
 */
const SCRIPT = `
folder=$1; shift
exec 3<&0 </dev/null >>"$folder/output" 2>&1
ulimit -c 0
cd "$folder/home" || exit 125
trap : HUP INT TERM
(
  trap - HUP INT TERM
  eval "$(cat <&3)"
  exec 3<&-
  if [ "$GDR_LAUNCH" != complete ]; then echo "not started: its controller stopped"; exit 125; fi
  unset GDR_LAUNCH
  exec "$@"
) &
main=$!
exec 3<&-
cat "/proc/$main/stat" >"$folder/main"
while :; do wait "$main"; code=$?; kill -0 "$main" 2>/dev/null || break; done
echo "$code" >"$folder/exit"
`;

const ABANDON_MS = 1_000;
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** A wrapper that waits for its environment. */
export interface Wrapper {
  readonly process: ProcessRef;
  /** Hands the environment over: the program starts. Call once. */
  launch(environment: Readonly<Record<string, string>>): Promise<void>;
  /**
   * Closes the input without an environment, so that the wrapper ends, and waits for that; one that is
   * still there after a second, frozen by somebody, is killed: nothing of the job has begun.
   */
  abandon(clock: Clock): Promise<void>;
  /** Resolves when the wrapper has ended; only in the process that made it. */
  readonly ended: Promise<void>;
}

/** Starts a wrapper as `userId` (null = as ourselves) in a session of its own. */
export async function startWrapper(
  folder: string,
  options: { readonly command: readonly string[]; readonly userId: number | null },
): Promise<Wrapper> {
  const { userId } = options;
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", SCRIPT, "gdr-executor", folder, ...options.command],
    clearEnv: true,
    env: { PATH },
    cwd: "/",
    stdin: "piped",
    stdout: "null",
    stderr: "null",
    // A session of its own: no signal of our terminal or group reaches it.
    detached: true,
    ...(userId === null ? {} : { uid: userId, gid: userId }),
  }).spawn();
  child.unref();
  const stdin = child.stdin.getWriter();
  const close = async () => {
    try {
      await stdin.close();
    } catch {
      // The wrapper has ended already; its exit file says why.
    }
  };
  const stat = await readStat(child.pid);
  if (stat === undefined) {
    await close();
    throw new Error(`Cannot read /proc/${child.pid}/stat of a process that was just started`);
  }
  return {
    process: { pid: child.pid, startTime: stat.startTime },
    async launch(environment) {
      try {
        await stdin.write(new TextEncoder().encode(exportScript(environment)));
      } finally {
        await close();
      }
    },
    async abandon(clock) {
      child.ref();
      using limit = clock.timeout(ABANDON_MS);
      using _killing = onAbort(limit.signal, () => signalProcess(-child.pid, "SIGKILL"));
      await close();
      await child.status;
    },
    ended: child.status.then(() => {}),
  };
}

/** Shell text that exports the environment and says at its end that it was complete. */
export function exportScript(environment: Readonly<Record<string, string>>): string {
  const lines = Object.entries(environment).map(([name, value]) => {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes("\0")) {
      throw new TypeError(`Cannot set the variable ${JSON.stringify(name)}: not a shell variable`);
    }
    return `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`;
  });
  return `${lines.join("")}GDR_LAUNCH=complete\n`;
}
