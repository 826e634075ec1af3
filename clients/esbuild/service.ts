import { stop } from "esbuild";
import { abortable } from "../../lib/abortable.ts";

let users = 0;
/** Counts the child processes that there were. */
let generation = 0;

/**
 * Runs `use`, which may call esbuild. esbuild's child process is shared by the whole program: it is
 * ended, and awaited, when its last user is done. When somebody else has ended it, as Ctrl-C in a terminal
 * does, `use` is run once more. Rejects with the signal's reason when that aborts first: a child that
 * does not answer is not waited for.
 */
export async function withEsbuild<T>(
  use: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const work = () => signal === undefined ? use() : abortable(use(), signal);
  users++;
  const born = generation;
  try {
    return await work();
  } catch (error) {
    if (!isDeath(error)) throw error;
    // Only the first of its users: the next child is for all of them.
    if (born === generation) {
      generation++;
      await stop();
    }
    signal?.throwIfAborted();
    return await work();
  } finally {
    users--;
    if (users === 0) {
      generation++;
      await stop();
    }
  }
}

/** The library's words when its child process has ended. */
function isDeath(error: unknown): boolean {
  return error instanceof Error &&
    /^The service (was stopped|is no longer running)/.test(error.message);
}
