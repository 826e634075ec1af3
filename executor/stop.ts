import { aborted, onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import { EXIT } from "./exit_codes.ts";
import type { FacadeApi } from "./facade_api.ts";
import { GateEnd } from "./gate_end.ts";
import type { Outbox } from "./outbox.ts";
import type { Runner } from "./runner.ts";

/** What happens when the executor is asked to end (SIGTERM). */
export interface StopWatch extends Disposable {
  /** Aborts at once. */
  readonly asked: AbortSignal;
  /** Aborts shortly before the grace period ends. */
  readonly over: AbortSignal;
  /** Why; undefined if nobody asked. */
  readonly why: string | undefined;
  /** How long the runner may let its job go on after SIGTERM, ms. */
  readonly shutdownMs: number;
  /** Throws a {@link GateEnd} if somebody asked. */
  throwIfAsked(): void;
  /**
   * Waits to be asked, tells the facade, then ends the runner. Resolves at once when the runner has
   * ended by itself before: who asks then interrupts nothing. Rejects with the signal's reason.
   */
  run(
    runner: Pick<Runner, "ended" | "terminate" | "endOrphans" | "kill">,
    signal: AbortSignal,
  ): Promise<void>;
}

/** What it works with. */
export interface StopDeps {
  readonly stop: AbortSignal;
  readonly facade: Pick<FacadeApi, "terminating">;
  readonly outbox: Pick<Outbox, "terminating">;
  readonly clock: Clock;
  /** From the request to the kill by whoever sent it, ms. */
  readonly graceMs: number;
}

/** Shares of the grace period. What follows the kill is for the delivery. */
const SHUTDOWN = 0.5;
const ORPHANS = 0.1;
const KILL = 0.75;
const OVER = 0.92;
const MAX_SHUTDOWN_MS = 60_000;

/** Watches `stop`; dispose it to free its timer. */
export function watchStop(deps: StopDeps): StopWatch {
  const { stop, clock, graceMs } = deps;
  const shutdownMs = Math.min(MAX_SHUTDOWN_MS, graceMs * SHUTDOWN);
  const over = new AbortController();
  const timers = new DisposableStack();
  let askedAt = 0;
  const onStop = () => {
    askedAt = clock.monotonic();
    deps.outbox.terminating(whyOf(stop));
    const end = timers.use(clock.timeout(graceMs * OVER));
    onAbort(end.signal, () => over.abort(end.signal.reason));
  };
  timers.use(onAbort(stop, onStop));
  return {
    asked: stop,
    over: over.signal,
    shutdownMs,
    get why() {
      return stop.aborted ? whyOf(stop) : undefined;
    },
    throwIfAsked() {
      if (stop.aborted) {
        throw new GateEnd(EXIT.stopped, `stopped before it had a task: ${whyOf(stop)}`);
      }
    },
    async run(runner, signal) {
      const asked = await Promise.race([
        aborted(stop, signal).then(() => true),
        runner.ended.then(() => false),
      ]);
      if (!asked) return;
      // Told first, so that a success that comes now is not believed; but the runner must hear of
      // it in time, too.
      using limit = clock.timeout(Math.min(2000, graceMs / 8));
      await deps.facade.terminating(whyOf(stop), {
        signal: AbortSignal.any([signal, limit.signal]),
      }).catch(() => signal.throwIfAborted());
      runner.terminate();
      const until = (ms: number) =>
        clock.sleep(Math.max(0, askedAt + ms - clock.monotonic()), signal);
      await until(shutdownMs + graceMs * ORPHANS);
      await runner.endOrphans();
      await until(graceMs * KILL);
      runner.kill();
    },
    [Symbol.dispose]: () => timers.dispose(),
  };
}

function whyOf(stop: AbortSignal): string {
  return typeof stop.reason === "string" ? stop.reason : "the executor was asked to end";
}
