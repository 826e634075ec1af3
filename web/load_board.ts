import {
  type Board,
  compareIn,
  type Filters,
  type Group,
  type GroupName,
  GROUPS,
  type Notice,
  onlyGroup,
  ROWS,
} from "../components/board.ts";
import type { AssignmentView, Page, Views } from "../controller/views/views.ts";
import { backendNameSchema, stateNameSchema } from "./schemas.ts";
import { withoutUndefined } from "./without_undefined.ts";

/** What the URL of the page Now asks for. */
export interface BoardQuery {
  readonly filters: Filters;
  readonly cursor: string | null;
  /** Rows of the page of a single list; null = as many as usual. */
  readonly rows: number | null;
  readonly notices: readonly Notice[];
}

const MOST_ROWS = 500;
const LISTS: readonly GroupName[] = ["waiting", "running", "ended"];

/** Reads the filters of a URL; what is not known is ignored, with a notice on the page. */
export function parseBoardQuery(query: URLSearchParams): BoardQuery {
  const notices: Notice[] = [];
  const read = <T>(
    name: "backend" | "state" | "list",
    parse: (value: string) => T | undefined,
  ): T | null => {
    const value = query.get(name);
    if (value === null || value === "") return null;
    const known = parse(value);
    if (known === undefined) notices.push({ kind: "ignored", name, value });
    return known ?? null;
  };
  const backend = read("backend", (value) => backendNameSchema.safeParse(value).data);
  const state = read("state", (value) => stateNameSchema.safeParse(value).data);
  const list = read("list", (value) => LISTS.find((name) => name === value));
  const repository = query.get("repository")?.trim().slice(0, 300) || null;
  const rows = Number(query.get("rows") ?? NaN);
  // Only a single list has pages.
  const paged = state !== null || list !== null;
  return {
    filters: { backend, state, repository, list: state === null ? list : null },
    cursor: paged ? query.get("cursor") || null : null,
    rows: paged && Number.isInteger(rows) && rows >= 1 ? Math.min(rows, MOST_ROWS) : null,
    notices,
  };
}

/** What {@link loadBoard} reads from. */
export interface BoardSource {
  readonly views: Views;
  readonly lastEventId: () => string;
  readonly now: () => number;
}

/** Reads everything that the page Now shows, as of one moment of the event stream. */
export async function loadBoard(source: BoardSource, query: BoardQuery): Promise<Board> {
  // A change while the lists were read would be counted twice by the browser: read again, but not for ever.
  for (let tries = 1;; tries++) {
    const lastEventId = source.lastEventId();
    const lists = await readLists(source.views, query);
    if (lastEventId !== source.lastEventId() && tries < 3) continue;
    const status = source.views.status();
    const at = new Date(source.now()).toISOString();
    return { at, lastEventId, status, statusAt: at, ...lists };
  }
}

type Lists = Omit<Board, "at" | "lastEventId" | "status" | "statusAt">;

async function readLists(views: Views, query: BoardQuery): Promise<Lists> {
  const { filters, cursor, notices } = query;
  const rest = { filters, notices, first: cursor === null };
  const name = onlyGroup(filters);
  if (name !== null) {
    const page = await readPage(views, query, name);
    if (page === undefined) {
      return readLists(views, {
        ...query,
        cursor: null,
        notices: [...notices, { kind: "bad_cursor" }],
      });
    }
    const lists = { waiting: NONE, running: NONE, ended: NONE };
    return { ...rest, ...lists, [name]: groupOfPage(page, name), nextCursor: page.nextCursor };
  }
  const [waiting, running, ended] = await Promise.all([
    readGroup(views, filters, "waiting"),
    readGroup(views, filters, "running"),
    readGroup(views, filters, "ended"),
  ]);
  return { ...rest, waiting, running, ended, nextCursor: null };
}

const NONE: Group = { items: [], total: 0 };

async function readPage(
  views: Views,
  { filters, cursor, rows }: BoardQuery,
  name: GroupName,
): Promise<Page<AssignmentView> | undefined> {
  if (cursor !== null && !/^[A-Za-z0-9_-]{1,500}$/.test(cursor)) return undefined;
  try {
    const limit = rows ?? Math.max(ROWS[name], MOST_OF_A_PAGE);
    return await views.assignments({ ...portFilters(filters, name), limit, cursor });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const MOST_OF_A_PAGE = 100;

async function readGroup(views: Views, filters: Filters, name: GroupName): Promise<Group> {
  const query = { ...portFilters(filters, name), limit: ROWS[name], cursor: null };
  return groupOfPage(await views.assignments(query), name);
}

function groupOfPage(page: Page<AssignmentView>, name: GroupName): Group {
  return { items: [...page.items].sort(compareIn(name)), total: page.total };
}

/** The filters that are set, as the port wants them, for one list. */
function portFilters({ backend, state, repository }: Filters, name: GroupName) {
  return withoutUndefined({
    backend: backend ?? undefined,
    state: state ?? undefined,
    states: state === null ? GROUPS[name] : undefined,
    repository: repository ?? undefined,
  });
}
