import type { LeaseState } from "./lease_history.ts";

/** Something a replica did that was no read, by the clock of the proxy that it passed. */
export interface Effect {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly where: "Gitea" | "NATS" | "Kubernetes";
  readonly what: string;
  /**
   * `store`: a fetched task is published, which a former leader may do for 10 s more.
   * `own label off`: a process says of its own Pod that it does not lead. `stream made`: the first
   * process ever makes the streams, before anybody leads.
   */
  readonly kind: "effect" | "store" | "own label off" | "stream made";
}

/** A time during which one contender held the Lease. */
export interface Term {
  readonly holder: string;
  /** Name of the replica; null for a contender of another kind. */
  readonly pod: string | null;
  /** When its holder asked for the Lease and got it, ms since the epoch. */
  readonly from: number;
  readonly transitions: number;
  /** When it was seen to be given back; null when it never was. */
  readonly released: number | null;
}

/** What became of one change of the leader. */
export interface Handover {
  readonly from: Term;
  readonly to: Term;
  /** Last effect of the one, first of the other; null where there was none. */
  readonly last: number | null;
  readonly first: number | null;
}

/** All of it. */
export interface Judgement {
  readonly handovers: readonly Handover[];
  /** Effects of one while another held the Lease, or before it ever led, in words. */
  readonly overlaps: readonly string[];
  /** Stores of a former leader within the 10 s that it has for them. */
  readonly lateStores: number;
  /** Labels that processes took off their own Pods while they did not lead. */
  readonly ownLabels: number;
  /** Streams that were made before anybody had led. */
  readonly streams: number;
  readonly effects: number;
}

const STORE_MS = 10_000;

/** The terms that a Lease's history tells; `writes` are the replicas' own, by Pod. */
export function termsOf(
  states: readonly LeaseState[],
  writes: ReadonlyMap<string, readonly number[]>,
): Term[] {
  const terms: Term[] = [];
  for (const { at, kind, holder, transitions } of states) {
    const last = terms.at(-1);
    if (kind === "deleted") continue;
    if (holder === "") {
      if (last !== undefined) terms[terms.length - 1] = { ...last, released: last.released ?? at };
      continue;
    }
    if (last?.holder === holder && last.released === null) continue;
    const pod = [...writes.keys()].find((name) => holder.startsWith(`${name}_`)) ?? null;
    const asked = pod === null ? at : writes.get(pod)?.findLast((write) => write <= at) ?? at;
    terms.push({ holder, pod, from: asked, transitions, released: null });
  }
  return terms;
}

/** Holds every effect against the terms. */
export function judge(
  terms: readonly Term[],
  effects: ReadonlyMap<string, readonly Effect[]>,
): Judgement {
  const overlaps: string[] = [];
  const byTerm = terms.map((): number[] => []);
  let lateStores = 0;
  let ownLabels = 0;
  let streams = 0;
  let count = 0;
  for (const [pod, list] of effects) {
    for (const effect of list) {
      count++;
      const index = terms.findLastIndex((term) => term.pod === pod && term.from <= effect.at);
      const next = index < 0 ? terms[0] : terms[index + 1];
      const within = index >= 0 && (next === undefined || effect.at < next.from);
      if (within && effect.kind !== "own label off") byTerm[index]?.push(effect.at);
      if (within) continue;
      if (effect.kind === "own label off") ownLabels++;
      else if (effect.kind === "stream made" && effect.at < (terms[0]?.from ?? Infinity)) streams++;
      else if (
        effect.kind === "store" && next !== undefined && index >= 0 &&
        effect.at < next.from + STORE_MS
      ) lateStores++;
      else {
        const late = next === undefined ? "" : `${Math.round(effect.at - next.from)} ms after `;
        const who = next === undefined ? "while nobody led" : `"${next.holder}" took the Lease`;
        overlaps.push(`${effect.where} ${effect.what} by "${pod}" ${late}${who}`);
      }
    }
  }
  const handovers = terms.slice(1).flatMap((to, index): Handover[] => {
    const from = terms[index];
    return from === undefined ? [] : [{
      from,
      to,
      last: byTerm[index]?.at(-1) ?? null,
      first: byTerm[index + 1]?.[0] ?? null,
    }];
  });
  return { handovers, overlaps, lateStores, ownLabels, streams, effects: count };
}
