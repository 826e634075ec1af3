import type { Entry } from "../entry.ts";
import type { Ledger } from "../ledger.ts";
import { type AssignmentId, type BackendName, BACKENDS } from "../model/ids.ts";
import { type State, type StateName, stateName } from "../model/state.ts";
import { byAge, pageAfter } from "./paging.ts";
import { assignmentView } from "./view_of.ts";
import type { AssignmentView, Page, Views } from "./views.ts";

/** Pages of assignments, and the place of each in its queue. */
export interface AssignmentLists {
  /** As {@link Views.assignments}, but throws where that rejects. */
  page(query: Parameters<Views["assignments"]>[0]): Page<AssignmentView>;
  /** 1 = next; null when it does not wait for a slot. */
  positionOf(entry: Entry): number | null;
}

const NEWEST_FIRST: readonly StateName[] = ["cleaned", "invalid"];
const EVERY: readonly StateName[] = [
  "stored",
  "admitted",
  "starting",
  "ready",
  "claimed",
  "running",
  "terminal",
  "parked",
  "invalid",
  "cleaned",
];

/** Lists over the ledger. With thousands waiting they are sorted once for each change, not for each page. */
export function createAssignmentLists(ledger: Ledger, signal: AbortSignal): AssignmentLists {
  let version = 0;
  ledger.subscribe(() => void version++, signal);
  const queues = new Map<BackendName, { readonly version: number; readonly sorted: Entry[] }>();
  const sortedQueue = (backend: BackendName): readonly Entry[] => {
    const known = queues.get(backend);
    if (known?.version === version) return known.sorted;
    const sorted = [...ledger.inState(backend, "stored")].sort(byAge);
    queues.set(backend, { version, sorted });
    return sorted;
  };

  let places = { version: -1, of: new Map<AssignmentId, number>() };
  const placesNow = () => {
    if (places.version === version) return places.of;
    const of = new Map<AssignmentId, number>();
    for (const backend of BACKENDS) {
      sortedQueue(backend).forEach((e, i) => of.set(e.info.id, i + 1));
    }
    places = { version, of };
    return of;
  };

  /** Kinds in which an assignment may show one of the states: `settling` ones show an earlier one. */
  const candidates = function* (backend: BackendName, states: readonly StateName[]) {
    for (const state of states) {
      if (state === "stored") yield* sortedQueue(backend);
      else if (state !== "invalid") yield* ledger.inState(backend, kindOf(state));
    }
    for (const entry of ledger.inState(backend, "settling")) {
      if (states.includes(stateName(entry.state))) yield entry;
    }
  };

  return {
    page(query) {
      const states = query.state === undefined ? query.states ?? EVERY : [query.state];
      const newestFirst = states.every((state) => NEWEST_FIRST.includes(state));
      const repository = query.repository?.toLowerCase();
      const entries: Entry[] = [];
      for (const backend of query.backend === undefined ? BACKENDS : [query.backend]) {
        for (const entry of candidates(backend, states)) {
          const named = repository === undefined ||
            entry.info.repository.toLowerCase() === repository;
          if (named) entries.push(entry);
        }
      }
      entries.sort(newestFirst ? (a, b) => byAge(b, a) : byAge);
      const page = pageAfter(entries, query, newestFirst);
      const items = page.items.map((entry) =>
        assignmentView(
          entry,
          entry.state.kind === "stored" ? placesNow().get(entry.info.id) ?? null : null,
        )
      );
      return { ...page, items };
    },
    positionOf(entry) {
      if (entry.state.kind !== "stored") return null;
      let position = 1;
      for (const other of ledger.inState(entry.info.backend, "stored")) {
        if (byAge(other, entry) < 0) position++;
      }
      return position;
    },
  };
}

function kindOf(state: Exclude<StateName, "invalid">): State["kind"] {
  return state;
}
