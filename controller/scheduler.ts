import { create } from "../proto/runtime.ts";
import { TaskStateSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Clock } from "../lib/clock.ts";
import { retryForever } from "../lib/retry.ts";
import { createDeclarer, type Declared } from "./declarer.ts";
import { createFetchPace } from "./fetch_pace.ts";
import { runFetcher } from "./fetcher.ts";
import { type Gitea, GiteaError } from "./gitea.ts";
import { createGiteaWatch, type GiteaWatch } from "./gitea_status.ts";
import { createShield } from "./shield.ts";
import { storeTask, type StoreTaskDeps } from "./store_task.ts";
import type { Logger } from "../lib/logger.ts";
import type { SourceHealth } from "../lib/source_health.ts";

/** What the scheduler needs. */
export interface SchedulerDeps extends StoreTaskDeps {
  readonly gitea: Gitea;
  /** Labels to be declared now, bare names (see `labels.ts`). */
  labels(): readonly string[];
  /** Resolves at the next change of {@link labels}; rejects when aborted. */
  labelsChanged(signal: AbortSignal): Promise<void>;
  /** Resolves when the control flags were read: nothing is declared or fetched before. */
  flagsReady(signal: AbortSignal): Promise<void>;
  /** Told how Gitea answers; one of its own by default. */
  readonly watch?: GiteaWatch;
  /** Told Gitea's `X-Gitea-Actions-Capabilities` after each Declare; null if it sent none. */
  onServerCapabilities?(value: string | null): void;
}

/** Settings of the scheduler; times in milliseconds. */
export interface SchedulerOptions {
  /** Capacity of all backends together; at least one fetcher runs. */
  readonly capacity: number;
  /** This program's version, without a name. */
  readonly version: string;
  /** What the executors' runner can do, e.g. `cancelling`. */
  readonly capabilities: readonly string[];
  /** Idle polls a second, all fetchers together. */
  readonly fetchMaxRps: number;
  readonly errorBackoffMs?: number;
  /** While idle, one fetch in this time forces Gitea to look. */
  readonly forceMs?: number;
  /** What is in flight at a stop is given this long. */
  readonly graceMs?: number;
}

/** Takes tasks from Gitea into the queue. */
export interface Scheduler {
  /**
   * Declares, then fetches until `signal` aborts; then lets fetches in flight finish and stores
   * their tasks, at most `graceMs`. Resolves when nothing is in flight any more; never rejects.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Fetch now, e.g. on a webhook. */
  nudge(): void;
  status(): SourceHealth;
  /** Labels that Gitea has, and since when; null before the first Declare. */
  declared(): Declared | null;
  /** When the next idle poll is due, milliseconds since the epoch; null while fetches are under way. */
  nextFetchAt(): number | null;
  /** True while a fetcher has this task and it is neither stored nor settled. */
  holds(taskId: string): boolean;
}

const DEFAULTS = { errorBackoffMs: 5_000, forceMs: 10_000, graceMs: 10_000 };

/** Makes a {@link Scheduler}. Run it once at a time. */
export function createScheduler(deps: SchedulerDeps, given: SchedulerOptions): Scheduler {
  const options = { ...DEFAULTS, ...given };
  const { clock, logger, random, recorder } = deps;
  const watch = deps.watch ?? createGiteaWatch(clock, logger);
  const pace = createFetchPace(clock, {
    idleIntervalMs: 1000 / options.fetchMaxRps,
    forceMs: options.forceMs,
  });
  const declarer = createDeclarer({
    gitea: deps.gitea,
    watch,
    logger,
    clock,
    random,
    labels: () => deps.labels(),
    labelsChanged: (signal) => deps.labelsChanged(signal),
    onGiven: () => pace.nudge(),
    onServerCapabilities: (value) => deps.onServerCapabilities?.(value),
    version: `gitea-dynamic-runner/${options.version}`,
    capabilities: options.capabilities,
    errorBackoffMs: options.errorBackoffMs,
  });
  const held = new Set<string>();
  const store: Parameters<typeof runFetcher>[0]["store"] = async (task, signal) => {
    const taskId = String(task.id);
    held.add(taskId);
    try {
      await storeTask(task, deps, signal);
    } catch (error) {
      // Only the end of the grace brings us here; Gitea's own time-out will fail the job.
      logger.error("scheduler error", { component: "scheduler", taskId, stored: false, error });
    } finally {
      held.delete(taskId);
    }
  };
  return {
    async run(signal) {
      try {
        await deps.flagsReady(signal);
        await declarer.declare(signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      using shield = createShield(clock, options.graceMs, signal);
      const { errorBackoffMs } = options;
      const fetcher = { gitea: deps.gitea, pace, watch, store, recorder, clock, random };
      const count = Math.max(1, options.capacity);
      const fetchers = Array.from(
        { length: count },
        () => runFetcher({ ...fetcher, errorBackoffMs }, { signal, shield: shield.signal }),
      );
      const following = declarer.follow(signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
      await Promise.all([...fetchers, following]);
    },
    nudge: () => pace.nudge(),
    status: () => watch.status(),
    declared: () => declarer.declared(),
    nextFetchAt() {
      const waitMs = pace.idleWaitMs();
      return waitMs === null ? null : clock.now() + waitMs;
    },
    holds: (taskId) => held.has(taskId),
  };
}

/**
 * Start-up check of the registration, without a trace at Gitea: an update of task 0, which no runner
 * has. Resolves when Gitea has answered as our runner's server; rejects at once with `GiteaError`
 * `unauthenticated` when the registration is wrong; waits, and logs `scheduler error`, while Gitea
 * does not answer or something else does.
 */
export async function checkRegistration(
  deps: {
    readonly gitea: Pick<Gitea, "updateTask">;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly random: () => number;
    /** Told of each try; the scheduler goes on with it. */
    readonly watch?: GiteaWatch;
  },
  signal: AbortSignal,
): Promise<void> {
  const watch = deps.watch ?? createGiteaWatch(deps.clock, deps.logger);
  await retryForever(async () => {
    try {
      await deps.gitea.updateTask({ state: create(TaskStateSchema, { id: 0n }) }, { signal });
    } catch (error) {
      if (!(error instanceof GiteaError) || !knowsUs(error)) throw error;
    }
  }, {
    clock: deps.clock,
    random: deps.random,
    signal,
    backoff: { firstMs: 1_000, maxMs: 5_000 },
    final: (error) => error instanceof GiteaError && error.code === "unauthenticated",
    onError: (error) => watch.failed(error),
  });
  watch.ok();
}

/** Gitea judged the task, so it has accepted the runner. */
function knowsUs(error: GiteaError): boolean {
  return error.code === "not_found" || error.code === "foreign_task";
}
