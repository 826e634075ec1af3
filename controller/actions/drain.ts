import type { Ledger } from "../ledger.ts";
import type { BackendName } from "../model/ids.ts";
import type { State } from "../model/state.ts";
import type { OperationView } from "../views/views.ts";

/** States of jobs that a drain waits for: until nothing is left of them. */
const UNDER_WAY = [
  "admitted",
  "starting",
  "ready",
  "claimed",
  "running",
  "settling",
  "terminal",
] as const satisfies readonly State["kind"][];

/**
 * How many jobs a drain of this backend still waits for, from the ledger as it stands; with `hold`
 * those that are stored do not count. `unknown` are executors that nobody can account for: they may be
 * running a job.
 */
export function drainLeft(
  ledger: Pick<Ledger, "inState">,
  backend: BackendName,
  { hold, unknown }: { readonly hold: boolean; readonly unknown: number },
): number {
  const count = (kind: State["kind"]) => ledger.inState(backend, kind).size;
  const underWay = UNDER_WAY.reduce((sum, kind) => sum + count(kind), unknown);
  return hold ? underWay : underWay + count("stored") + count("parked");
}

/**
 * A drain's progress: `total` is what it had to wait for when it began, or more when tasks that were
 * on their way have come since. Nothing is counted up or down.
 */
export function drainProgress(left: number, total: number): OperationView["progress"] {
  const all = Math.max(left, total);
  return { done: all - left, total: all };
}
