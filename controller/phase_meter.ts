import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import { divide, noteMoment } from "./views/moments.ts";
import { phasesOf, type PhaseSpan, type PhaseStatistics } from "./views/phases.ts";
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
    noteExecutor(entry);
    if (entry.state.kind === "claimed" && !entry.restored && !started.has(entry)) {
      started.add(entry);
      const ms = Math.max(0, entry.stateSince - entry.createdAt);
      to.statistics.add(entry.info.backend, "to_start", ms);
    }
    // One that an earlier process began has only its last phases here.
    if (entry.state.kind !== "cleaned" || entry.restored || measured.has(entry)) return;
    measured.add(entry);
    const { backend } = entry.info;
    const spans = phasesOf(entry.journal, entry.createdAt);
    const took = ({ startedAt, endedAt }: PhaseSpan) =>
      endedAt === null ? null : Math.max(0, endedAt - startedAt);
    for (const span of spans) {
      const ms = took(span);
      if (ms !== null) to.recorder.phase(backend, span.name, ms / 1_000);
    }
    // Pages show them divided, and compare with others that were divided, too.
    for (const span of divide(spans, entry.moments)) {
      const ms = took(span);
      if (ms !== null) to.statistics.add(backend, span.name, ms);
    }
  }, signal);
}

/** What the backend's view of the executor tells of its way. */
function noteExecutor({ executor, moments, updatedAt }: Entry): void {
  if (executor === null) return;
  if (executor.node !== null) noteMoment(moments, "scheduled", updatedAt);
  const runs = executor.phase.toLowerCase() === "running" && executor.waiting === null;
  if (executor.node !== null && runs) noteMoment(moments, "image_ready", updatedAt);
}
