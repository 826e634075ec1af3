import type { Clock } from "../../lib/clock.ts";
import type { ControllerProcess } from "../support/controller_process.ts";

/** What of a process a supervisor needs. */
export type Supervised =
  & Pick<ControllerProcess, "pid" | "exited" | "url" | "text" | "end">
  & AsyncDisposable;

/** A controller that ended though nobody had asked it to; times are those of the supervisor's clock. */
export interface Exit {
  readonly code: number;
  readonly from: number;
  readonly to: number;
  /** It had recovered before. */
  readonly ready: boolean;
  readonly lastLines: readonly string[];
}

/**
 * Keeps one controller running, as Kubernetes does: one that ends by itself is started again after 1,
 * 2, 4, 8 and then each time 10 seconds, until one has recovered.
 */
export interface Supervisor extends AsyncDisposable {
  /** Of the one that runs now; null while there is none. */
  readonly pid: number | null;
  /** Of its dashboard, without the trailing slash; empty while there is none. */
  readonly url: string;
  /**
   * Kills the one that runs, if any does, and resolves once another one has recovered. Rejects when
   * none has within a minute.
   */
  replace(): Promise<void>;
  /** Sends SIGTERM to the one that runs and resolves to its exit code; -1 when none runs. */
  end(): Promise<number>;
  /** Everything that they have printed. */
  log(): Promise<string>;
  /** Those that ended by themselves since the last call. */
  takeExits(): readonly Exit[];
}

/** Restarts and the back-off between them are in it. */
const READY_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 10_000;
const POLL_MS = 50;
const END_MS = 20_000;
const LAST_LINES = 8;

interface Running {
  readonly process: Supervised;
  readonly from: number;
  ready: boolean;
  /** Null while it has not ended. */
  code: number | null;
  to: number;
  /** Aborts with its end. */
  readonly over: AbortController;
}

/** Makes a {@link Supervisor} under which nothing runs yet. */
export function createSupervisor(deps: {
  readonly clock: Clock;
  start(): Promise<Supervised>;
  /** Whether the one with that dashboard has recovered; may reject while it does not answer. */
  isReady(url: string): Promise<boolean>;
  /** Told of each that ends by itself. */
  say(line: string): void;
}): Supervisor {
  const { clock } = deps;
  const stop = new AbortController();
  let running: Running | undefined;
  let url = "";
  let earlier = "";
  let exits: Exit[] = [];
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work, work);
    turn = mine.catch(() => {});
    return mine;
  };

  /** What is left of one that has ended: a later start empties the file of its log. */
  const bury = async ({ process, from, to, ready, code }: Running, bySelf: boolean) => {
    running = undefined;
    url = "";
    const text = await process.text();
    earlier += text;
    if (!bySelf || code === null) return;
    const lastLines = text.trimEnd().split("\n").slice(-LAST_LINES);
    exits.push({ code, from, to, ready, lastLines });
    deps.say(
      `        the controller ended by itself with exit code ${code}: ${lastLines.at(-1) ?? ""}`,
    );
  };

  const kill = async () => {
    const killed = running;
    if (killed === undefined) return;
    // The end of the supervisor has killed it before.
    const bySelf = killed.code !== null && !stop.signal.aborted;
    await killed.process[Symbol.asyncDispose]();
    await bury(killed, bySelf);
  };

  const spawn = async (): Promise<Running> => {
    stop.signal.throwIfAborted();
    const from = clock.monotonic();
    const process = await deps.start();
    const over = new AbortController();
    const spawned: Running = { process, from, ready: false, code: null, to: NaN, over };
    running = spawned;
    void process.exited.then((code) => {
      Object.assign(spawned, { code, to: clock.monotonic() });
      over.abort(new DOMException(`Ended with exit code ${code}`, "AbortError"));
    });
    return spawned;
  };

  const recovers = async (one: Running, until: number) => {
    const its = await one.process.url();
    if (running === one) url = its;
    while (clock.monotonic() < until) {
      if (await deps.isReady(its).catch(() => false)) return true;
      await clock.sleep(POLL_MS, one.over.signal);
    }
    throw new Error(`Wait for the controller to have recovered: not within ${READY_MS} ms`);
  };

  const bringUp = async () => {
    const until = clock.monotonic() + READY_MS;
    for (let times = 1;; times++) {
      const one = await spawn();
      const ended = one.process.exited.then(() => false);
      one.ready = await Promise.race([ended, recovers(one, until)]);
      if (one.ready) return restartAfter(one);
      await bury(one, !stop.signal.aborted);
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (times - 1));
      if (clock.monotonic() + pause >= until) {
        throw new Error(`Wait for the controller to have recovered: it ended ${times} times`);
      }
      await clock.sleep(pause, stop.signal);
    }
  };

  const restartAfter = (one: Running) => {
    const restart = async () => {
      if (running !== one || stop.signal.aborted) return;
      await bury(one, true);
      await clock.sleep(FIRST_PAUSE_MS, stop.signal);
      await bringUp();
    };
    one.process.exited.then(() => inTurn(restart)).catch((error) => {
      if (!stop.signal.aborted) deps.say(`        start another controller: ${error}`);
    });
  };

  return {
    get pid() {
      return running?.process.pid ?? null;
    },
    get url() {
      return url;
    },
    replace: () =>
      inTurn(async () => {
        await kill();
        await bringUp();
      }),
    end: () =>
      inTurn(async () => {
        const last = running;
        if (last === undefined) return -1;
        const bySelf = last.code !== null;
        const code = await last.process.end("SIGTERM", { ms: END_MS });
        await bury(last, bySelf);
        return code;
      }),
    log: async () => earlier + (await running?.process.text() ?? ""),
    takeExits() {
      const taken = exits;
      exits = [];
      return taken;
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new DOMException("The supervisor ends", "AbortError"));
      await running?.process[Symbol.asyncDispose]();
      await inTurn(kill);
    },
  };
}
