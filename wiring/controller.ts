import { createAuditLog } from "../clients/nats/audit_log.ts";
import { watchBucket } from "../clients/nats/watch_bucket.ts";
import type { SignOuts } from "../controller/access/sign_outs.ts";
import type { Config } from "../controller/config/config.ts";
import { type BackendName, BACKENDS } from "../controller/model/ids.ts";
import type { Engine } from "../controller/engine.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { together } from "../lib/together.ts";
import { startActing } from "./acting.ts";
import { showActing, showStandby } from "./boards.ts";
import { createHealthChecks, type HealthChecks } from "./health.ts";
import { connect, noteLostRecords } from "./connections.ts";
import type { LateActions } from "./late_actions.ts";
import type { LateNudge } from "./late_nudge.ts";
import type { LateViews } from "./late_views.ts";
import { actWhileLeading, createLeading } from "./leading.ts";
import type { Parts } from "./parts.ts";
import type { Sources } from "./sources.ts";

/** What the process gives to everything. */
export interface Surroundings {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: () => number;
  readonly recorder: Recorder;
  readonly views: LateViews;
  readonly actions: LateActions;
  readonly hints: LateNudge;
  /** Null where nobody signs in. */
  readonly signOuts: SignOuts | null;
  readonly sources: Sources;
  /** Called once when the lead is lost, before anything has been closed. */
  onLost?(): void;
}

/** A controller that is connected to everything, and leads when it may. */
export interface Controller extends AsyncDisposable {
  /**
   * Contends for the lead, then acts. Resolves when `signal` has aborted and everything has stopped, in
   * the embedded profile executors, too; rejects when it must not go on, with `LeadershipLost` when
   * another leads.
   */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Connects to everything, as {@link connect} does.
 *
 * ```
 * connect --> standby --acquire--> facade, engine, scheduler, pages of a leader --stop--> all closed,
 *                |                                  |                                then released
 *             nothing acts, no port for executors   +--lost--> facade closed at once, LeadershipLost
 * ```
 */
export async function startController(
  parts: Parts,
  around: Surroundings,
  signal: AbortSignal,
): Promise<Controller> {
  await using stack = new AsyncDisposableStack();
  const { config, views, actions, hints, sources, clock } = around;
  const connections = await connect(parts, { ...around, stack }, signal);
  // Streams are there by now; the leader's own audit is another one, and guarded.
  actions.auditTo(stack.use(createAuditLog(connections.nats, around)));
  const leading = createLeading(parts, connections, { ...around, stack });
  const { leadership, lost, resigned } = leading;
  const label = parts.label?.(leading.guard);
  const checked = { ...around, connections, giteaUrl: parts.gitea.url };
  const standbyChecks = createHealthChecks(checked);
  void standbyChecks.recheck(signal);
  views.become(showStandby({ ...around, connections, checks: standbyChecks }));

  const lead = async (stop: AbortSignal, ordered: AbortSignal) => {
    await using acting = await startActing(parts, { ...around, connections, leading }, stop);
    const counts = sources.countQueue(connections.queue, enabledBackends(config));
    const checks = createHealthChecks({ ...checked, acting });
    views.become(showActing(acting, { ...around, connections, counts, checks }));
    actions.become(acting.operating.actions);
    hints.become(acting.scheduler.nudge);
    const onLost = () => {
      noteLostRecords(around);
      leading.fence("the bucket CI_RUNNER_STATE is gone");
    };
    await together([
      (signal) => acting.run(signal, ordered),
      counts.run,
      ...label === undefined ? [] : [label.keep],
      (signal) => recheckOnce(checks, { engine: acting.engine, clock }, signal),
      (signal) => watchBucket(connections.nats, { clock, signal, onLost }),
    ], stop);
  };

  const owned = stack.move();
  return {
    async run(stop) {
      const either = AbortSignal.any([stop, lost, resigned]);
      // One that an earlier process of this Pod has left would lead executors astray.
      const cleared = await label?.clear(either) ?? true;
      const waiting = new AbortController();
      const later = AbortSignal.any([either, waiting.signal]);
      const clearing = cleared ? null : label?.clearLater(later);
      try {
        await leadership.acquire(either);
      } finally {
        waiting.abort();
        await clearing;
      }
      await actWhileLeading(leadership, (signal) => lead(signal, stop), either);
      lost.throwIfAborted();
      resigned.throwIfAborted();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const RECOVERED_MS = 500;
const RECOVERY_PATIENCE_MS = 15_000;

/** Once the recovery is over, for which jobs wait, or takes long: both read all executors there are. */
async function recheckOnce(
  checks: HealthChecks,
  { engine, clock }: { readonly engine: Pick<Engine, "ready">; readonly clock: Clock },
  stop: AbortSignal,
): Promise<void> {
  const until = clock.monotonic() + RECOVERY_PATIENCE_MS;
  while (!engine.ready() && !stop.aborted && clock.monotonic() < until) {
    await clock.sleep(RECOVERED_MS, stop).catch(() => {});
  }
  await checks.recheck(stop);
}

/** Backends that this configuration runs. */
export function enabledBackends(config: Config): BackendName[] {
  return BACKENDS.filter((name) => config.backends[name].enabled);
}
