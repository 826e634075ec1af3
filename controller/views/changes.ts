import type { Clock } from "../../lib/clock.ts";
import type { Entry } from "../entry.ts";
import type { Ledger } from "../ledger.ts";
import type { AssignmentId, BackendName } from "../model/ids.ts";
import { assignmentView, executorView } from "./view_of.ts";
import type { AssignmentView, BackendView, Change, ExecutorView } from "./views.ts";

/** What was last told of one assignment. */
interface Told {
  readonly assignment: AssignmentView;
  readonly executor: ExecutorView | null;
}

/** A backend's view lists all its slots: with a thousand of them it is not made for every change. */
const BACKEND_PAUSE_MS = 100;

/**
 * Tells a listener what has changed, with what it was told before. Heartbeats and the like are
 * changes of the executor, not of the assignment. A backend is told of once for all changes of 100 ms.
 * Ends with the signal.
 */
export function tellChanges(
  deps: {
    readonly ledger: Ledger;
    readonly clock: Clock;
    readonly enabled: readonly BackendName[];
    backendView(name: BackendName): BackendView;
  },
  listener: (change: Change) => void,
  signal: AbortSignal,
): void {
  const { ledger, clock } = deps;
  const told = new Map<AssignmentId, Told>();
  const backends = new Map<BackendName, BackendView>();
  const snapshot = (entry: Entry): Told => ({
    assignment: assignmentView(entry, null),
    executor: executorView(entry) ?? null,
  });
  // What stands there now is not new to a listener that has just read it.
  for (const entry of ledger.entries()) {
    if (entry.state.kind !== "cleaned") told.set(entry.info.id, snapshot(entry));
  }
  for (const name of deps.enabled) backends.set(name, deps.backendView(name));

  const stale = new Set<BackendName>();
  const tellBackends = () => {
    for (const name of stale) {
      const view = deps.backendView(name);
      listener({ kind: "backend", old: backends.get(name) ?? null, new: view });
      backends.set(name, view);
    }
    stale.clear();
  };
  const tellSoon = (name: BackendName) => {
    const waits = stale.size > 0;
    stale.add(name);
    // An abort ends it: then nobody listens any more.
    if (!waits) void clock.sleep(BACKEND_PAUSE_MS, signal).then(tellBackends, () => {});
  };

  ledger.subscribe((entry) => {
    const { id, backend } = entry.info;
    const old = told.get(id);
    const now = snapshot(entry);
    if (entry.state.kind === "cleaned") told.delete(id);
    else told.set(id, now);
    if (old === undefined || differs(old.assignment, now.assignment)) {
      listener({ kind: "assignment", old: old?.assignment ?? null, new: now.assignment });
    }
    const before = old?.executor ?? null;
    if (JSON.stringify(before) !== JSON.stringify(now.executor)) {
      listener({ kind: "executor", old: before, new: now.executor });
    }
    // A slot may come free while the state stays: then the executor has changed.
    if (old !== undefined && old.assignment.state === now.assignment.state) {
      if ((before === null) === (now.executor === null)) return;
    }
    tellSoon(backend);
  }, signal);
}

/** True when more than the time of the update differs. */
function differs(a: AssignmentView, b: AssignmentView): boolean {
  return JSON.stringify({ ...a, updatedAt: "" }) !== JSON.stringify({ ...b, updatedAt: "" });
}
