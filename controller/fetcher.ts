import type { Clock } from "../lib/clock.ts";
import { backoffMs } from "../lib/retry.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { FetchPace, Question } from "./fetch_pace.ts";
import type { Gitea } from "./gitea.ts";
import type { GiteaWatch } from "./gitea_status.ts";
import type { Recorder } from "./recorder.ts";

/** What one fetcher needs; pace and watch are shared by all of them. */
export interface FetcherDeps {
  readonly gitea: Pick<Gitea, "fetchTask">;
  readonly pace: FetchPace;
  readonly watch: GiteaWatch;
  /** Stores the task; rejects only when `signal` aborts. */
  store(task: Task, signal: AbortSignal): Promise<void>;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly random: () => number;
  /** Wait of this fetcher after an error, milliseconds. */
  readonly errorBackoffMs: number;
}

/** Wait after Gitea said that too many ask at once, milliseconds. */
const THROTTLED = { firstMs: 100, maxMs: 1_000 };

/**
 * One fetcher: ask, store what came, ask again; its task is its own until the queue has it. Runs
 * until `signal` aborts. What is in flight then is finished under `shield`, which aborts later: a
 * task that Gitea has handed out is lost if nobody stores it.
 */
export async function runFetcher(
  deps: FetcherDeps,
  signals: { readonly signal: AbortSignal; readonly shield: AbortSignal },
): Promise<void> {
  const { clock, pace, random, recorder, watch } = deps;
  const { shield, signal } = signals;
  let throttled = 0;
  let failed = false;
  while (!signal.aborted) {
    let question: Question;
    try {
      question = await (failed ? pace.retry(signal) : pace.next(signal));
    } catch {
      return;
    }
    let task: Task | undefined;
    try {
      const answer = await deps.gitea.fetchTask(question.version, { signal: shield });
      watch.ok();
      failed = false;
      task = answer.task;
      const meaning = pace.answered(question, {
        task: task !== undefined,
        tasksVersion: answer.tasksVersion,
      });
      recorder.fetched(meaning);
      throttled = meaning === "throttled" ? throttled + 1 : 0;
    } catch (error) {
      if (shield.aborted) return;
      failed = true;
      recorder.fetched("error");
      watch.failed(error);
    }
    if (task !== undefined) await deps.store(task, shield);
    const pauseMs = failed
      ? backoffMs(1, { firstMs: deps.errorBackoffMs, maxMs: deps.errorBackoffMs }, random)
      : throttled > 0
      ? backoffMs(throttled, THROTTLED, random)
      : 0;
    if (pauseMs > 0) await clock.sleep(pauseMs, signal).catch(() => {});
  }
}
