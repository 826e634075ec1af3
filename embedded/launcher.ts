import { isAlive, type ProcessRef, readStat } from "../backends/process/proc.ts";
import { aborted } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";

const POLL_MS = 500;

/**
 * `npx ... task start` runs this program below three others: npm, a shell, and `deno task`. The shell
 * passes no signal on: whoever ends npx alone would leave us running unseen. Resolves when one of the
 * three has ended, or when `signal` aborts; when this process was started in another way only then.
 */
export async function npxEnded(
  options: { readonly clock: Clock; readonly signal: AbortSignal; readonly parent?: number },
): Promise<void> {
  const { clock, signal, parent = Deno.ppid } = options;
  const above = await launchersAbove(parent);
  while (above.length > 0 && !signal.aborted) {
    const alive = await Promise.all(above.map(isAlive));
    if (alive.includes(false)) return;
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
  await aborted(signal);
}

/** True when this process was started with SIGHUP ignored, as nohup does. */
export async function hangupIgnored(): Promise<boolean> {
  const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(await readText("/proc/self/status"))?.[1] ?? "0";
  return (BigInt(`0x${ignored}`) & 1n) === 1n;
}

/** npm, its shell and `deno task`, when they are what `parent` and its ancestors are; else nothing. */
async function launchersAbove(parent: number): Promise<ProcessRef[]> {
  const expected = [
    /(^|\/)deno(\.exe)?\0task\0/,
    /(^|\/)\w*sh\0-c\0/,
    /^npm |(^|\/)node\0.*\bnp[mx]\b/,
  ];
  const found: ProcessRef[] = [];
  let pid = parent;
  for (const pattern of expected) {
    const [command, status, stat] = await Promise.all([
      readText(`/proc/${pid}/cmdline`),
      readText(`/proc/${pid}/status`),
      readStat(pid),
    ]);
    if (!pattern.test(command) || stat === undefined) return [];
    found.push({ pid, startTime: stat.startTime });
    pid = Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1] ?? 0);
  }
  return found;
}

/** Empty where there is no /proc, and for a process that has ended. */
function readText(path: string): Promise<string> {
  return Deno.readTextFile(path).catch(() => "");
}
