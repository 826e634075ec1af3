import {
  type Board,
  compareIn,
  type Group,
  type GroupName,
  groupOf,
  matches,
  ROWS,
} from "../components/board.ts";
import type { AssignmentView, Change, StatusView } from "../controller/views/views.ts";

/** The board with a whole new status. */
export function applyStatus(board: Board, status: StatusView, at: string): Board {
  return { ...board, at, status, statusAt: at };
}

/** The board after a change; the same object when the change does not touch it. Pure. */
export function applyChange(board: Board, change: Change, at: string): Board {
  switch (change.kind) {
    case "assignment":
      return applyJob({ ...board, at }, change.old, change.new);
    case "backend": {
      const backends = board.status.backends.map((backend) =>
        backend.name === change.new.name ? change.new : backend
      );
      return { ...board, at, status: { ...board.status, backends } };
    }
    case "leader":
      return { ...board, at, status: { ...board.status, leader: change.new } };
    case "executor":
    case "operation":
      return board;
    default:
      return change satisfies never;
  }
}

/**
 * Totals move by the old and the new state of the job, never by what happens to be drawn, so that they
 * stay right for lists longer than the page.
 */
function applyJob(board: Board, old: AssignmentView | null, job: AssignmentView | null): Board {
  const { filters } = board;
  const from = old !== null && matches(filters, old) ? groupOf(old.state) : null;
  const to = job !== null && matches(filters, job) ? groupOf(job.state) : null;
  const id = job?.id ?? old?.id;
  let next = board;
  if (from !== null && from !== to) next = edit(next, from, -1, (items) => without(items, id));
  if (to !== null && job !== null) {
    next = edit(next, to, from === to ? 0 : 1, (items) => place(next, to, items, job));
  }
  // The stream tells no places: the one that was drawn is the one that comes free.
  const drawn = board.waiting.items.find((item) => item.id === id)?.position ?? null;
  const left = drawn ?? old?.position ?? null;
  if (old?.state === "stored" && left !== null && job?.state !== "stored") {
    next = moveUp(next, old.backend, left);
  }
  return next;
}

function edit(
  board: Board,
  name: GroupName,
  step: number,
  change: (items: readonly AssignmentView[]) => readonly AssignmentView[],
): Board {
  const group = board[name];
  const items = change(group.items);
  const edited: Group = { items, total: Math.max(items.length, group.total + step) };
  return { ...board, [name]: edited };
}

function without(items: readonly AssignmentView[], id: string | undefined) {
  return items.filter((item) => item.id !== id);
}

function place(
  board: Board,
  name: GroupName,
  items: readonly AssignmentView[],
  job: AssignmentView,
): readonly AssignmentView[] {
  const index = items.findIndex((item) => item.id === job.id);
  if (index >= 0) {
    const position = job.position ??
      (job.state === "stored" ? items[index]?.position ?? null : null);
    return items.map((item, i) => i === index ? { ...job, position } : item)
      .sort(compareIn(name));
  }
  // A later page of a list keeps its rows: new ones belong to another page.
  if (!board.first) return items;
  // A list that was read on for scrolling stays as long as it is.
  const most = Math.max(ROWS[name], items.length);
  return numbered(board, [...items, job].sort(compareIn(name))).slice(0, most);
}

/**
 * The stream tells no places: of a list that begins with the first in the queue they can be counted. A
 * filter by repository hides others that wait.
 */
function numbered(board: Board, items: readonly AssignmentView[]): readonly AssignmentView[] {
  if (board.filters.repository !== null) return items;
  const places = new Map<string, number>();
  return items.map((item) => {
    if (item.state !== "stored") return item;
    const position = item.position ?? (places.get(item.backend) ?? 0) + 1;
    places.set(item.backend, position);
    return item.position === null ? { ...item, position } : item;
  });
}

/** Somebody left the queue: everyone behind is one nearer. */
function moveUp(board: Board, backend: string, left: number): Board {
  const items = board.waiting.items.map((item) =>
    item.backend === backend && item.position !== null && item.position > left
      ? { ...item, position: item.position - 1 }
      : item
  );
  return { ...board, waiting: { ...board.waiting, items } };
}
