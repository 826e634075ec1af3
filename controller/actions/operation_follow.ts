import type { Clock } from "../../lib/clock.ts";
import type { ReleaseTier } from "./action_kinds.ts";
import { drainLeft, drainProgress } from "./drain.ts";
import type { Engine } from "../engine.ts";
import type { Entry } from "../entry.ts";
import type { AssignmentId, BackendName } from "../model/ids.ts";
import type { Operation } from "./operation.ts";
import type { Operations } from "./operations.ts";

/** What following needs of the engine. */
export type FollowedEngine = Pick<
  Engine,
  "ledger" | "pools" | "flags" | "release" | "ready" | "recovered"
>;

/** How a followed operation came to its end; `lifted`: somebody else has ended it. */
export type Followed =
  | { readonly kind: "ended"; readonly after: unknown }
  | { readonly kind: "lifted" };

/** Waits for what operations were begun for. Level-based: each look reads the ledger as it stands. */
export interface Follow {
  /** Until nothing of a backend runs any more, and Gitea does not hand out for it. */
  drain(
    operation: Operation,
    drain: { readonly backend: BackendName; readonly hold: boolean },
    signal: AbortSignal,
  ): Promise<Followed>;
  /** Until nothing is left of an assignment, or `forget` has given it up; `why` as for `Release`. */
  end(
    operation: Operation,
    how: { readonly id: AssignmentId; readonly tier: ReleaseTier; readonly why: string },
    signal: AbortSignal,
  ): Promise<Followed>;
  /** Until an earlier process's assignments are known; at once for one that is. */
  known(id: AssignmentId, signal: AbortSignal): Promise<Entry | undefined>;
}

/** Between looks. */
const LOOK_MS = 250;
/** Nothing left for so long: what was fetched before the label was gone has arrived by then. */
const QUIET_MS = 2_000;
/** A runner that was told to end its job is given this long. */
const PATIENCE_MS = 120_000;
/** An end that takes longer says what it waits for. */
const SLOW_MS = 15_000;

/** Makes {@link Follow}. */
export function createFollow(deps: {
  readonly engine: FollowedEngine;
  readonly operations: Operations;
  readonly clock: Clock;
  /** Whether Gitea may still hand out jobs of this backend to us. */
  offered(backend: BackendName): boolean;
  /** The deadline of a drain has passed; told once. */
  onLate(operation: Operation, detail: string): Promise<void>;
}): Follow {
  const { engine, operations, clock } = deps;
  const { ledger } = engine;

  const waitFor = (operation: Operation, error: string | null) =>
    operations.show(operation.id, { error });

  const cleaned = (entry: Entry | undefined): Followed | undefined => {
    if (entry === undefined) return { kind: "ended", after: { state: "cleaned", result: null } };
    return entry.state.kind === "cleaned"
      ? { kind: "ended", after: { state: "cleaned", result: entry.result } }
      : undefined;
  };

  return {
    async drain(operation, { backend, hold }, signal) {
      let quietSince: number | null = null;
      let late = operation.error !== null;
      while (true) {
        const flag = engine.flags(backend).drain;
        if (flag?.operation !== operation.id) return { kind: "lifted" };
        if (engine.recovered(backend)) {
          const unknown = engine.pools[backend].unknown();
          const left = drainLeft(ledger, backend, { hold, unknown });
          const { total } = (operations.get(operation.id) ?? operation).progress;
          const progress = drainProgress(left, total);
          operations.show(operation.id, { progress });
          const quiet = left === 0 && !deps.offered(backend);
          if (!quiet) quietSince = null;
          else if (clock.monotonic() - (quietSince ??= clock.monotonic()) >= QUIET_MS) {
            return { kind: "ended", after: operation.after };
          }
          if (!late && flag.deadline !== null && clock.now() >= flag.deadline) {
            late = true;
            const rest = left === 1 ? "1 job is" : `${left} jobs are`;
            const detail = `The deadline is over and ${rest} left: wait on, cancel, or undo`;
            await deps.onLate(operation, detail);
          }
        }
        await clock.sleep(LOOK_MS, signal);
      }
    },
    async end(operation, { id, tier, why }, signal) {
      const since = clock.monotonic();
      while (true) {
        const entry = ledger.get(id);
        const ended = cleaned(entry);
        if (ended !== undefined || entry === undefined) return ended ?? { kind: "lifted" };
        const { state } = entry;
        if (tier === "forget" && state.kind === "terminal" && state.message === "gone") {
          return { kind: "ended", after: { state: "terminal", result: state.result } };
        }
        const waited = clock.monotonic() - since;
        const running = state.kind === "claimed" || state.kind === "running";
        if (tier === "graceful" && running) {
          // Again and again: it may have been claimed in the very moment of the first time.
          engine.release.cancel(id, why);
          if (waited >= PATIENCE_MS) {
            engine.release.stop(id, `${why}; its runner did not end it within 2 minutes`);
          }
        }
        if (waited >= SLOW_MS) waitFor(operation, waitsFor(entry));
        await clock.sleep(LOOK_MS, signal);
      }
    },
    async known(id, signal) {
      while (ledger.get(id) === undefined && !engine.ready()) await clock.sleep(LOOK_MS, signal);
      return ledger.get(id);
    },
  };
}

/** What the end of an assignment waits for. */
function waitsFor({ state, executor, info }: Entry): string {
  switch (state.kind) {
    case "settling":
      return "Gitea has not taken the end yet; it is told again and again";
    case "terminal": {
      const name = executor?.name ?? "the executor";
      return `Backend "${info.backend}" has not confirmed that "${name}" is gone; it is deleted again and again`;
    }
    case "claimed":
    case "running":
      return "The job's runner has not ended it yet";
    case "stored":
    case "parked":
    case "admitted":
    case "starting":
    case "ready":
    case "cleaned":
      return `It is ${state.kind}`;
    default:
      return state satisfies never;
  }
}
