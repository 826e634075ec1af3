/** Promises that somebody waits for in the end. */
export interface BackgroundTasks {
  /** A failure is told, not thrown. */
  add(task: Promise<unknown>): void;
  /** Resolves when none is left, those that were added meanwhile included. */
  ended(): Promise<void>;
}

/** Makes {@link BackgroundTasks}. */
export function createBackgroundTasks(failed: (error: unknown) => void): BackgroundTasks {
  const running = new Set<Promise<void>>();
  return {
    add(task) {
      const run: Promise<void> = task.then(() => {}, failed).then(() => {
        running.delete(run);
      });
      running.add(run);
    },
    async ended() {
      while (running.size > 0) await Promise.all([...running]);
    },
  };
}
