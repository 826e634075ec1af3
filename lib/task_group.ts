import type { Logger } from "./logger.ts";

/**
 * Owner of background work: nothing floats. A task that throws is logged, unless it was aborted;
 * disposing aborts all and waits for them.
 */
export interface TaskGroup extends AsyncDisposable {
  /** Aborts when the group is being disposed of. */
  readonly signal: AbortSignal;
  /** Starts `task`; its failure is logged under `name`. */
  spawn(name: string, task: (signal: AbortSignal) => Promise<void>): void;
  /** Tasks under way. */
  readonly size: number;
}

/** Makes a {@link TaskGroup} that ends with `parent`. */
export function createTaskGroup(logger: Logger, parent?: AbortSignal): TaskGroup {
  const controller = new AbortController();
  const signal = parent === undefined
    ? controller.signal
    : AbortSignal.any([controller.signal, parent]);
  const running = new Set<Promise<void>>();
  return {
    signal,
    get size() {
      return running.size;
    },
    spawn(name, task) {
      const run = (async () => {
        try {
          await task(signal);
        } catch (error) {
          if (!signal.aborted) logger.error("background task failed", { task: name, error });
        }
      })();
      running.add(run);
      run.finally(() => running.delete(run));
    },
    async [Symbol.asyncDispose]() {
      controller.abort(new DOMException("Stopped", "AbortError"));
      while (running.size > 0) await Promise.all([...running]);
    },
  };
}
