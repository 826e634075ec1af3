import type { GatePhases } from "../controller/model/gate_phase.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import { EXIT, type Outcome } from "./exit_codes.ts";
import type { FacadeApi } from "./facade_api.ts";
import { GateEnd } from "./gate_end.ts";
import type { GateLimits } from "./gate_limits.ts";
import type { Outbox } from "./outbox.ts";
import type { Sent } from "./report_sender.ts";

/** The gate's own calls to the facade over its life. */
export interface Heartbeat {
  /** Repeats the first heartbeat until it is taken. Rejects with {@link GateEnd} or the signal's reason. */
  meet(signal: AbortSignal): Promise<void>;
  /** One heartbeat each interval until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Says how it ended, for as long as that is of use to the controller. Never rejects. */
  exit(
    outcome: Outcome,
    options: {
      readonly claimed: boolean;
      readonly over: AbortSignal;
      readonly phases: GatePhases;
    },
  ): Promise<void>;
}

/** What it works with. */
export interface HeartbeatDeps {
  readonly facade: FacadeApi;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly limits: Omit<GateLimits, "identityMs" | "lingerMs">;
  readonly outbox: Pick<Outbox, "started">;
  /** Where the job's log began when the task was handed over; undefined before, or when it was not said. */
  logOffset(): number | undefined;
  /** Called with a {@link GateEnd} when the facade wants nothing of this executor. */
  readonly end: (error: GateEnd) => void;
}

const MEET = { firstMs: 50, maxMs: 2000 };
const EXIT_RETRY = { firstMs: 200, maxMs: 5000 };

/** Makes a {@link Heartbeat}. */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { facade, clock, logger, limits, outbox } = deps;
  let heardAt = clock.monotonic();
  let refusedSince: number | undefined;

  /** The end that this answer means while there is no task; undefined while there is hope. */
  const endOf = (sent: Sent<void>): GateEnd | undefined => {
    const now = clock.monotonic();
    if (sent.kind !== "later") heardAt = now;
    if (sent.kind === "accepted") {
      refusedSince = undefined;
      return undefined;
    }
    // A controller that has just started may not know this executor yet.
    if (sent.kind === "refused") {
      refusedSince ??= now;
      if (now - refusedSince < limits.refusalMs) return undefined;
      return new GateEnd(EXIT.claimRefused, `the facade refused: ${sent.why}`);
    }
    if (now - heardAt < limits.facadeMs) return undefined;
    const detail = `no answer of the facade for ${limits.facadeMs / 1000} s: ${sent.why}`;
    return new GateEnd(EXIT.facadeSilent, detail);
  };

  return {
    async meet(signal) {
      heardAt = clock.monotonic();
      for (let attempt = 1;; attempt++) {
        const beat = { holdsTask: false, logOffset: undefined };
        const sent = await facade.heartbeat(beat, { signal });
        if (sent.kind === "accepted") return;
        const end = endOf(sent);
        if (end !== undefined) throw end;
        logger.warn("facade does not answer yet", { why: sent.why, attempt });
        await clock.sleep(backoffMs(attempt, MEET, deps.random), signal);
      }
    },
    async run(signal) {
      while (true) {
        await clock.sleep(limits.heartbeatMs, signal);
        const beat = { holdsTask: outbox.started, logOffset: deps.logOffset() };
        const sent = await facade.heartbeat(beat, { signal });
        if (sent.kind !== "accepted") logger.warn("heartbeat was not taken", { why: sent.why });
        const end = endOf(sent);
        // With a task, the reports decide.
        if (end !== undefined && !outbox.started) deps.end(end);
      }
    },
    async exit(outcome, { claimed, over, phases }) {
      const { code, detail } = outcome;
      const delivered = code === EXIT.delivered;
      if (code === EXIT.identity) return;
      // A claimed job without a result waits for this call; for the others it only saves time.
      const patience = code === EXIT.facadeSilent ? 1000 : 5000;
      using limit = clock.timeout(claimed && !delivered ? limits.deliveryMs : patience);
      const signal = AbortSignal.any([limit.signal, over]);
      try {
        for (let attempt = 1;; attempt++) {
          const sent = await facade.exit({ delivered, code, detail, phases }, { signal });
          if (sent.kind !== "later") return;
          await clock.sleep(backoffMs(attempt, EXIT_RETRY, deps.random), signal);
        }
      } catch (error) {
        logger.warn("facade was not told how it ended", { error });
      }
    },
  };
}
