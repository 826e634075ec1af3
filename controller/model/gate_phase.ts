/**
 * What a gate reaches on its way, in the order in which it usually does: an SVID, the facade's first
 * answer, the runner made ready and started, its Declare, its task, its end, the end of the delivery.
 */
export const GATE_PHASES = [
  "svid",
  "facade",
  "prepared",
  "runner",
  "declare",
  "task",
  "runner_ended",
  "ended",
] as const;

/** One of {@link GATE_PHASES}. */
export type GatePhase = (typeof GATE_PHASES)[number];

/** When a gate reached each phase, milliseconds since its start; only those that it has reached. */
export type GatePhases = Partial<Readonly<Record<GatePhase, number>>>;

/** Reads {@link GatePhases} from a gate's JSON: what is none of it is left out. */
export function parseGatePhases(value: unknown): GatePhases {
  if (typeof value !== "object" || value === null) return {};
  const known = new Map(Object.entries(value));
  return Object.fromEntries(
    GATE_PHASES.flatMap((phase) => {
      const ms: unknown = known.get(phase);
      return typeof ms === "number" && Number.isSafeInteger(ms) && ms >= 0 ? [[phase, ms]] : [];
    }),
  );
}
