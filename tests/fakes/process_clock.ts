import type { Clock } from "../../lib/clock.ts";

/** Time as one process of several sees it: it can be frozen, and its wall clock set. */
export interface ProcessClock extends Clock {
  /** SIGSTOP: time goes on, but no timer and no answer reaches the process. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** SIGKILL: frozen for ever. */
  end(): void;
  readonly frozen: boolean;
  /** Resolves while the process runs; what comes from outside passes here. */
  awake(): Promise<void>;
  /** Sets the wall clock on, or back. */
  jump(ms: number): void;
}

/** Makes a {@link ProcessClock} whose time passes with `base`. */
export function createProcessClock(base: Clock): ProcessClock {
  let gate: PromiseWithResolvers<void> | null = null;
  let ended = false;
  let wallMs = 0;
  const awake = async () => {
    while (gate !== null) await gate.promise;
  };
  return {
    freeze() {
      gate ??= Promise.withResolvers();
    },
    end() {
      ended = true;
      gate ??= Promise.withResolvers();
    },
    thaw() {
      if (ended) return;
      const opened = gate;
      gate = null;
      opened?.resolve();
    },
    get frozen() {
      return gate !== null;
    },
    awake,
    jump(ms) {
      wallMs += ms;
    },
    now: () => base.now() + wallMs,
    monotonic: () => base.monotonic(),
    async sleep(ms, signal) {
      await base.sleep(ms, signal);
      await awake();
    },
    timeout(ms) {
      const controller = new AbortController();
      const disposed = new AbortController();
      const fire = async () => {
        await base.sleep(ms, disposed.signal);
        await awake();
        disposed.signal.throwIfAborted();
        controller.abort(new DOMException(`Timed out after ${ms} ms`, "TimeoutError"));
      };
      fire().catch(() => {}); // Disposed of.
      return { signal: controller.signal, [Symbol.dispose]: () => disposed.abort() };
    },
  };
}
