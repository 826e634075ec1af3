import type { Executor } from "./backend.ts";
import type { Entry } from "./entry.ts";

/**
 * Notes that somebody else deletes the executor that has the job: the controller itself never does
 * before the job has ended. True when that is new.
 */
export function noteDeletion(entry: Entry, executor: Executor): boolean {
  const { kind } = entry.state;
  if (!executor.terminating || entry.deletion !== null) return false;
  if (kind !== "claimed" && kind !== "running") return false;
  entry.deletion = executor.deletion === undefined
    ? "the executor was deleted by somebody other than the controller"
    : `the executor was deleted: ${executor.deletion}`;
  return true;
}

/** Why the executor ends before its job has, in words: by its backend's word, else by its gate's. */
export function whyEnding(entry: Entry): string | null {
  return entry.deletion ?? entry.terminating;
}
