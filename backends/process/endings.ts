import type { Ending } from "../../controller/backend.ts";
import { exitText } from "../exit_texts.ts";
import { lastLinesOf } from "../last_lines.ts";
import { readEnd, readStart } from "./folder.ts";
import { isAlive, isDead, parseStat, type ProcessRef, readStat } from "./proc.ts";

const TAIL_BYTES = 16 * 1024;
/** The output of the gate and the runner is kept below this, the newest part. */
const OUTPUT_BYTES = 4 * 1024 * 1024;

/**
 * How the executor in `folder` ended; null while its wrapper or its program runs. What stands in its
 * files is believed only for the exit code: the job may write there.
 */
export async function endingOf(
  folder: string,
  executor: { readonly process: ProcessRef; readonly sameBoot: boolean },
): Promise<Ending | null> {
  if (executor.sameBoot) {
    if (await isAlive(executor.process)) return null;
    const noted = parseStat(await readStart(`${folder}/main`, 1024) ?? "");
    const main = noted === undefined ? undefined : await readStat(noted.pid);
    // A job that kills the wrapper has not ended: its own program still runs. It may write what it
    // likes there, so the session is asked of the kernel.
    if (
      main !== undefined && main.startTime === noted?.startTime && !isDead(main) &&
      main.session === executor.process.pid
    ) return null;
  }
  const lastLines = await tailOf(folder);
  const text = (await readStart(`${folder}/exit`, 16))?.trim() ?? "";
  if (/^[0-9]{1,3}$/.test(text)) {
    const exitCode = Number(text);
    return { code: "executor_failed", detail: exitText(exitCode), exitCode, lastLines };
  }
  const detail = executor.sameBoot
    ? "its process vanished without an exit code"
    : "the machine was restarted";
  return { code: "executor_lost", detail, exitCode: null, lastLines };
}

/** The last lines that gate and runner printed. */
async function tailOf(folder: string): Promise<string[]> {
  return lastLinesOf(new TextDecoder().decode(await readEnd(`${folder}/output`, TAIL_BYTES)));
}

/**
 * Keeps a file that a running program appends to from growing for ever: only its end is kept. Lines
 * written during the cut may be lost.
 */
export async function boundOutput(folder: string): Promise<void> {
  const path = `${folder}/output`;
  try {
    const { isFile, size } = await Deno.lstat(path);
    if (!isFile || size <= OUTPUT_BYTES) return;
    const tail = await readEnd(path, TAIL_BYTES);
    await Deno.truncate(path, 0);
    await Deno.writeFile(path, tail, { append: true, create: false });
  } catch (error) {
    const isGone = error instanceof Deno.errors.NotFound;
    // Closed by the job itself: it fills its own disk.
    if (!isGone && !(error instanceof Deno.errors.PermissionDenied)) throw error;
  }
}
