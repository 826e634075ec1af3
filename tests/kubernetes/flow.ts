import { createBackgroundTasks } from "../support/background_tasks.ts";
import { eventually } from "../support/eventually.ts";
import type { Stage } from "./stage.ts";

/** Jobs that come in by themselves. */
export interface Flow extends AsyncDisposable {
  /** Resolves when so many have succeeded; rejects when one has not. */
  succeeded(count: number): Promise<void>;
  /** No more come; resolves to how many there were when all have succeeded. */
  end(): Promise<number>;
}

const EVERY_MS = 5_000;
const AT_ONCE = 2;
const END_MS = 300_000;

/** Dispatches a short job every five seconds, while fewer than two run. */
export function startFlow({ gitea, repository }: Stage): Flow {
  const stop = new AbortController();
  const tasks = createBackgroundTasks(() => {});
  const open = new Set<number>();
  const bad: string[] = [];
  let good = 0;
  const look = async () => {
    for (const run of [...open]) {
      const { done, jobs } = await gitea.run(repository, run);
      if (!done) continue;
      open.delete(run);
      const [job] = jobs;
      if (job?.status === "success") good++;
      else bad.push(`run ${run}: ${job?.status}`);
    }
    if (!stop.signal.aborted && open.size < AT_ONCE) {
      open.add(await gitea.dispatch(repository, "quick.yaml"));
    }
  };
  tasks.add((async () => {
    while (!stop.signal.aborted) {
      // One that Gitea did not take is none.
      await look().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  })());
  const fine = () => {
    if (bad.length > 0) throw new Error(`Jobs that did not succeed: ${bad.join(", ")}`);
  };
  return {
    async succeeded(count) {
      await eventually(() => bad.length > 0 || good >= count, {
        what: `${count} jobs to succeed`,
        timeoutMs: END_MS,
      });
      fine();
    },
    async end() {
      stop.abort();
      await tasks.ended();
      await eventually(async () => {
        await look();
        return open.size === 0;
      }, { what: "the end of the jobs", timeoutMs: END_MS, everyMs: 500 }).catch((cause) => {
        throw new Error(`Runs ${[...open].join(", ")} do not end`, { cause });
      });
      fine();
      return good;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await tasks.ended();
    },
  };
}
