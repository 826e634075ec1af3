import type { Entry } from "../entry.ts";
import { phasesOf, type PhaseSpan } from "./phases.ts";

/** What the journal has no event for, but people want to see on a job's way. */
export type Moment = "scheduled" | "image_ready" | "first_call" | "first_row";

/** When each was first seen, milliseconds since the epoch; what an earlier process saw is not known. */
export type Moments = Map<Moment, number>;

/** Keeps the first time only. */
export function noteMoment(moments: Moments, moment: Moment, at: number): void {
  if (!moments.has(moment)) moments.set(moment, at);
}

/** Which phase a moment divides, and the name of what comes before it. */
const DIVIDES: Readonly<Record<Moment, { readonly phase: string; readonly before: string }>> = {
  scheduled: { phase: "start", before: "schedule" },
  image_ready: { phase: "start", before: "image" },
  first_call: { phase: "start", before: "boot" },
  first_row: { phase: "run", before: "first_row" },
};

/**
 * The moments of an assignment that this process has seen from their phase's beginning on. One that took it
 * over knows later phases only: the first row that it sees of a job that ran before is not the job's first.
 */
export function momentsOf(
  entry: Pick<Entry, "restored" | "moments" | "journal" | "createdAt">,
): ReadonlyMap<Moment, number> {
  const { restored, moments, journal, createdAt } = entry;
  if (!restored) return moments;
  const known = new Set(phasesOf(journal, createdAt).map(({ name }) => name));
  return new Map([...moments].filter(([moment]) => known.has(DIVIDES[moment].phase)));
}

/**
 * The phases with those divided whose moments are known: what is before a moment has a name of its own,
 * what is after the last one keeps the phase's name. A moment outside of its phase divides nothing.
 */
export function divide(
  spans: readonly PhaseSpan[],
  moments: ReadonlyMap<Moment, number>,
): PhaseSpan[] {
  return spans.flatMap((span) => {
    const inside = [...moments]
      .filter(([moment, at]) =>
        DIVIDES[moment].phase === span.name && at >= span.startedAt &&
        (span.endedAt === null || at <= span.endedAt)
      )
      .sort((a, b) => a[1] - b[1]);
    let startedAt = span.startedAt;
    const parts = inside.map(([moment, endedAt]): PhaseSpan => {
      const part = { name: DIVIDES[moment].before, startedAt, endedAt };
      startedAt = endedAt;
      return part;
    });
    return [...parts, { ...span, startedAt }];
  });
}
