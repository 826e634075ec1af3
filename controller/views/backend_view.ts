import { drainLeft } from "../actions/drain.ts";
import type { FailureLog } from "./failure_log.ts";
import type { Ledger } from "../ledger.ts";
import type { Entry } from "../entry.ts";
import type { BackendName } from "../model/ids.ts";
import { stateName } from "../model/state.ts";
import type { FlagView } from "./operating_views.ts";
import type { PhaseStatistics } from "./phases.ts";
import type { Pool } from "../pool.ts";
import type { QueueCounts } from "../queue.ts";
import type { ControlFlags, FlagNote } from "../records.ts";
import { iso, isoOrNull } from "./view_of.ts";
import type { BackendView } from "./views.ts";

/** What a backend's view is made of. */
export interface BackendViewDeps {
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  readonly statistics: PhaseStatistics;
  readonly failures: FailureLog;
  flags(backend: BackendName): ControlFlags;
  label(backend: BackendName): string;
  counts(backend: BackendName): QueueCounts | null;
}

/** Costs as much as there are slots, however many wait: it is made at every change of a state. */
export function backendView(deps: BackendViewDeps, name: BackendName): BackendView {
  const { ledger } = deps;
  const pool = deps.pools[name];
  const used = pool.holders().size;
  const unknown = pool.unknown();
  const { cordon, drain, capacity, label } = deps.flags(name);
  const counts = deps.counts(name);
  const count = (kind: Entry["state"]["kind"]) => ledger.inState(name, kind).size;
  const holders = [...pool.holders()].flatMap((id) => ledger.get(id) ?? []);
  return {
    name,
    label: deps.label(name),
    capacity: pool.capacity(),
    used,
    free: Math.max(0, pool.capacity() - used - unknown),
    waiting: count("stored"),
    running: count("running") + count("claimed"),
    parked: count("parked"),
    unknown,
    numPending: counts?.numPending ?? null,
    numAckPending: counts?.numAckPending ?? null,
    cordoned: cordon === null ? null : noteView(cordon),
    drain: drain === null ? null : {
      ...noteView(drain),
      deadline: isoOrNull(drain.deadline),
      remaining: drainLeft(ledger, name, { hold: drain.hold, unknown }),
      hold: drain.hold,
    },
    overrides: { capacity: flagView(capacity), label: flagView(label) },
    startMs: deps.statistics.of(name, "to_start"),
    failures: deps.failures.of(name),
    slots: holders.map((e) => ({
      assignmentId: e.info.id,
      executor: e.executor?.name ?? null,
      state: stateName(e.state),
      since: iso(e.stateSince),
    })),
  };
}

/** Who set a flag, when and why. */
export function noteView({ by, at, note }: FlagNote) {
  return { by, at: iso(at), note };
}

/** A value that an operator has set; null when none has. */
export function flagView<T>(
  flag: (FlagNote & { readonly value: T; readonly replaced: T }) | null,
): FlagView<T> | null {
  return flag === null ? null : { ...noteView(flag), value: flag.value, replaced: flag.replaced };
}
