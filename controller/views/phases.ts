import type { JournalEvent } from "../model/state.ts";
import type { BackendName } from "../model/ids.ts";

/** One phase of an assignment's way, between two events of its journal. */
interface Phase {
  readonly name: string;
  readonly from: JournalEvent | "stored";
  readonly to: JournalEvent;
}

/** In the order of the way; each begins where the one before ends. */
const PHASES: readonly Phase[] = [
  { name: "queued", from: "stored", to: "received" },
  { name: "admission", from: "received", to: "capacity_acquired" },
  { name: "create", from: "capacity_acquired", to: "executor_created" },
  { name: "identity", from: "executor_created", to: "identity_bound" },
  { name: "start", from: "identity_bound", to: "runner_claimed" },
  { name: "hand_over", from: "runner_claimed", to: "running" },
  { name: "run", from: "running", to: "terminal" },
  { name: "clean_up", from: "terminal", to: "cleaned" },
];

/** Names of the phases, in the order of the way. */
export const phaseNames: readonly string[] = PHASES.map(({ name }) => name);

/** A phase that has begun; `endedAt` is null while it lasts. */
export interface PhaseSpan {
  readonly name: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
}

/**
 * The phases of a journal. `storedAt` is when JetStream stored the task. The last time counts for an
 * event that was repeated before the claim, so that retries lengthen the phase they belong to.
 */
export function phasesOf(
  journal: readonly { readonly event: string; readonly at: number }[],
  storedAt: number,
): PhaseSpan[] {
  const at = new Map<string, number>([["stored", storedAt]]);
  for (const entry of journal) {
    if (entry.event === "received" && at.has("received")) continue;
    at.set(entry.event, entry.at);
  }
  const spans: PhaseSpan[] = [];
  for (const phase of PHASES) {
    const startedAt = at.get(phase.from);
    if (startedAt === undefined) continue;
    const endedAt = at.get(phase.to) ?? null;
    spans.push({ name: phase.name, startedAt, endedAt });
  }
  // A job that ended early leaves phases open that no event will close.
  const last = journal.at(-1);
  const over = at.has("cleaned") && last !== undefined;
  return spans.map((span) => over && span.endedAt === null ? { ...span, endedAt: last.at } : span);
}

/** Recent durations of each phase and backend, for p50 and p95. */
export interface PhaseStatistics {
  add(backend: BackendName, phase: string, ms: number): void;
  /** Milliseconds; null while nothing was measured. */
  of(
    backend: BackendName,
    phase: string,
  ): { readonly p50: number | null; readonly p95: number | null };
}

/** Makes {@link PhaseStatistics} over the last `keep` of each. */
export function createPhaseStatistics(keep = 200): PhaseStatistics {
  const rings = new Map<string, number[]>();
  return {
    add(backend, phase, ms) {
      const key = `${backend}/${phase}`;
      const ring = rings.get(key) ?? [];
      ring.push(ms);
      if (ring.length > keep) ring.shift();
      rings.set(key, ring);
    },
    of(backend, phase) {
      const sorted = (rings.get(`${backend}/${phase}`) ?? []).toSorted((a, b) => a - b);
      return { p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95) };
    },
  };
}

function quantile(sorted: readonly number[], q: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? null;
}
