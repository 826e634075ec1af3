import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import { phasesOf, type PhaseStatistics } from "./phases.ts";
import type { Recorder } from "./recorder.ts";

/** Feeds each finished phase to statistics and metrics once, until the signal aborts. */
export function measurePhases(
  ledger: Ledger,
  to: { readonly statistics: PhaseStatistics; readonly recorder: Recorder },
  signal: AbortSignal,
): void {
  const measured = new WeakSet<Entry>();
  const started = new WeakSet<Entry>();
  ledger.subscribe((entry) => {
    if (entry.state.kind === "claimed" && !entry.restored && !started.has(entry)) {
      started.add(entry);
      const ms = Math.max(0, entry.stateSince - entry.createdAt);
      to.statistics.add(entry.info.backend, "to_start", ms);
    }
    // One that an earlier process began has only its last phases here.
    if (entry.state.kind !== "cleaned" || entry.restored || measured.has(entry)) return;
    measured.add(entry);
    const { backend } = entry.info;
    for (const span of phasesOf(entry.journal, entry.createdAt)) {
      if (span.endedAt === null) continue;
      const ms = Math.max(0, span.endedAt - span.startedAt);
      to.statistics.add(backend, span.name, ms);
      to.recorder.phase(backend, span.name, ms / 1_000);
    }
  }, signal);
}
