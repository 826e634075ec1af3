import { type Board, compareIn, type GroupName, hrefOf } from "../components/board.ts";
import type { AssignmentView } from "../controller/views/views.ts";

/** What reading a list on needs of the page. */
export interface LongListHost {
  /** The board as it is now. */
  read(): Board;
  write(board: Board): void;
  /** The page at `href` as JSON; undefined when it cannot be had now. */
  fetch(href: string): Promise<Board | undefined>;
  /** Runs it after `ms`. */
  later(run: () => void, ms: number): void;
  readonly signal: AbortSignal;
}

/** Reads lists of the page Now on, page by page, while somebody scrolls. */
export interface LongList {
  /** The list should have `until` rows, if there are so many. */
  want(name: GroupName, until: number): void;
  /** The stream told of these: what a page says of them, that was asked for before, is older. */
  told(ids: readonly string[]): void;
  /** The board was read anew: reading on begins at its start. */
  reset(): void;
}

/** Rows of one answer. */
const ROWS = 500;
const RETRY_MS = 2_000;

/** Makes a {@link LongList}; one answer is waited for at a time. */
export function createLongList(host: LongListHost): LongList {
  let wanted = 0;
  let cursor: string | null = null;
  let over = false;
  let busy = false;
  let generation = 0;
  const told = new Set<string>();

  const readOn = async (name: GroupName) => {
    if (busy) return;
    busy = true;
    try {
      while (!over && host.read()[name].items.length < wanted && !host.signal.aborted) {
        const mine = generation;
        told.clear();
        const { filters } = host.read();
        const only = filters.state === null ? { ...filters, list: name } : filters;
        const href = `${hrefOf(only, cursor)}&rows=${ROWS}`;
        const page = await host.fetch(href);
        if (mine !== generation) continue;
        if (page === undefined) {
          host.later(() => void readOn(name), RETRY_MS);
          return;
        }
        cursor = page.nextCursor;
        over = cursor === null;
        host.write(merge(host.read(), name, page[name].items.filter(({ id }) => !told.has(id))));
      }
    } finally {
      busy = false;
    }
  };

  return {
    want(name, until) {
      wanted = until;
      void readOn(name);
    },
    told(ids) {
      if (busy) { for (const id of ids) told.add(id); }
    },
    reset() {
      generation++;
      cursor = null;
      over = false;
      told.clear();
    },
  };
}

/** The board with further rows of one list; how many there are in all is the stream's to say. */
function merge(board: Board, name: GroupName, more: readonly AssignmentView[]): Board {
  const known = new Set(board[name].items.map(({ id }) => id));
  const items = [...board[name].items, ...more.filter(({ id }) => !known.has(id))]
    .sort(compareIn(name));
  return { ...board, [name]: { ...board[name], items } };
}
