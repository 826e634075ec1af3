import type { Ending } from "../../controller/backend.ts";
import { keepEnd, readEnd, readStart } from "../../lib/foreign_file.ts";
import { exitText } from "../exit_texts.ts";
import { lastLinesOf } from "../last_lines.ts";
import { isAlive, isDead, parseStat, type ProcessRef, readStat } from "./proc.ts";

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
  const lastLines = lastLinesOf(await readEnd(`${folder}/output`));
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

/** Keeps what gate and runner print from filling the disk. */
export async function boundOutput(folder: string): Promise<void> {
  await keepEnd(`${folder}/output`, OUTPUT_BYTES);
}
