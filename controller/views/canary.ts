import type { Clock } from "../../lib/clock.ts";
import type { Entry } from "../entry.ts";
import type { Ledger } from "../ledger.ts";
import type { FailureView, LabelView } from "./operating_views.ts";
import { createPhaseStatistics } from "./phases.ts";

/** Labels of the `vm` backend: production first, then the canary. */
export const VM_LABELS = ["vm", "vm-dev"] as const;
type VmLabel = (typeof VM_LABELS)[number];

/** How the jobs of the production label and of the canary label do beside each other. */
export interface LabelLog {
  /** When it began to count, milliseconds since the epoch. */
  readonly since: number;
  of(label: VmLabel): Omit<LabelView, "declared">;
  /** Jobs of the backend whose label is not known. */
  unlabelled(): number;
}

const LAST_FAILURES = 5;

interface Sum {
  ended: number;
  success: number;
  failure: number;
  cancelled: number;
  lastFailures: FailureView[];
}

/** Follows the ledger until the signal aborts. */
export function createLabelLog(
  { ledger, clock }: { readonly ledger: Ledger; readonly clock: Pick<Clock, "now"> },
  signal: AbortSignal,
): LabelLog {
  const since = clock.now();
  const sums: Record<VmLabel, Sum> = { "vm": emptySum(), "vm-dev": emptySum() };
  const starts = { "vm": createPhaseStatistics(), "vm-dev": createPhaseStatistics() };
  const started = new WeakSet<Entry>();
  const ended = new WeakSet<Entry>();
  let unlabelled = 0;

  ledger.subscribe((entry) => {
    const { backend, label } = entry.info;
    if (backend !== "vm") return;
    const { kind } = entry.state;
    if (kind === "claimed" && label !== undefined && !entry.restored && !started.has(entry)) {
      started.add(entry);
      starts[label].add("vm", "to_start", Math.max(0, entry.stateSince - entry.createdAt));
    }
    if (kind !== "cleaned" || ended.has(entry)) return;
    ended.add(entry);
    if (label === undefined) unlabelled++;
    else addEnd(sums[label], entry);
  }, signal);

  const count = (label: VmLabel, ...kinds: readonly Entry["state"]["kind"][]) => {
    let n = 0;
    for (const kind of kinds) {
      for (const entry of ledger.inState("vm", kind)) if (entry.info.label === label) n++;
    }
    return n;
  };

  return {
    since,
    of: (label) => ({
      label,
      waiting: count(label, "stored", "parked", "admitted", "starting", "ready"),
      running: count(label, "claimed", "running", "terminal"),
      ...sums[label],
      startMs: starts[label].of("vm", "to_start"),
    }),
    unlabelled: () => unlabelled,
  };
}

function emptySum(): Sum {
  return { ended: 0, success: 0, failure: 0, cancelled: 0, lastFailures: [] };
}

function addEnd(sum: Sum, entry: Entry): void {
  sum.ended++;
  if (entry.result === "success") sum.success++;
  if (entry.result === "cancelled") sum.cancelled++;
  if (entry.result !== "failure") return;
  sum.failure++;
  const { id, repository, job } = entry.info;
  const failure = {
    id,
    repository,
    job,
    at: new Date(entry.updatedAt).toISOString(),
    code: entry.reason?.code ?? null,
    detail: entry.reason?.detail ?? null,
  };
  sum.lastFailures = [failure, ...sum.lastFailures].slice(0, LAST_FAILURES);
}
