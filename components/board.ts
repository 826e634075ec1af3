import type { BackendName } from "../controller/model/ids.ts";
import type { StateName } from "../controller/model/state.ts";
import type { AssignmentView, StatusView } from "../controller/views/views.ts";
import type { Dated } from "./dated.ts";

/** Filters of the page Now; all in its URL. */
export interface Filters {
  readonly backend: BackendName | null;
  readonly state: StateName | null;
  readonly repository: string | null;
  /** Only this list, page by page. */
  readonly list: GroupName | null;
}

/** Some jobs of a kind, and how many there are in all. */
export interface Group {
  readonly items: readonly AssignmentView[];
  readonly total: number;
}

/** The three lists of the page. */
export type GroupName = "waiting" | "running" | "ended";

/** Something about the request that the page says, e.g. a filter that it ignored. */
export type Notice =
  | {
    readonly kind: "ignored";
    readonly name: "backend" | "state" | "list";
    readonly value: string;
  }
  | { readonly kind: "bad_cursor" };

/** Everything that the page Now shows. */
export interface Board extends Dated {
  readonly status: StatusView;
  /** When the status was read: what its ages are counted from. */
  readonly statusAt: string;
  readonly filters: Filters;
  readonly waiting: Group;
  readonly running: Group;
  readonly ended: Group;
  /** Set when one list is shown page by page and there is a further page. */
  readonly nextCursor: string | null;
  /** False on the second and later pages of a list. */
  readonly first: boolean;
  readonly notices: readonly Notice[];
}

/** States of each list. Waiting: its runner has not got the job yet. */
export const GROUPS: Readonly<Record<GroupName, readonly StateName[]>> = {
  waiting: ["stored", "parked", "admitted", "starting", "ready"],
  running: ["claimed", "running", "terminal"],
  ended: ["cleaned", "invalid"],
};

/** How many rows a list shows. */
export const ROWS: Readonly<Record<GroupName, number>> = { waiting: 100, running: 100, ended: 20 };

/** The list in which a job of that state stands. */
export function groupOf(state: StateName): GroupName {
  if (GROUPS.waiting.includes(state)) return "waiting";
  return GROUPS.running.includes(state) ? "running" : "ended";
}

/** Order of a list: waiting and running oldest first, ended newest first. */
export function compareIn(group: GroupName): (a: AssignmentView, b: AssignmentView) => number {
  if (group === "ended") return (a, b) => order(b.updatedAt, a.updatedAt) || order(a.id, b.id);
  return (a, b) =>
    order(a.createdAt, b.createdAt) ||
    (a.streamSequence ?? Infinity) - (b.streamSequence ?? Infinity) || order(a.id, b.id);
}

/** The list that the filters leave; null when all three are shown. */
export function onlyGroup({ state, list }: Filters): GroupName | null {
  return state === null ? list : groupOf(state);
}

/** True when the filters let the job through. */
export function matches(filters: Filters, job: AssignmentView): boolean {
  return (filters.backend === null || job.backend === filters.backend) &&
    (filters.state === null || job.state === filters.state) &&
    (filters.list === null || groupOf(job.state) === filters.list) &&
    (filters.repository === null ||
      job.repository.toLowerCase() === filters.repository.toLowerCase());
}

/** Path and query of the page with these filters. */
export function hrefOf(filters: Partial<Filters>, cursor: string | null = null): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...filters, cursor })) {
    if (value !== null && value !== undefined) query.set(name, value);
  }
  return query.size === 0 ? "/" : `/?${query}`;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
