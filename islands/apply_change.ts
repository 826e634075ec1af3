import {
  type Board,
  compareIn,
  type Group,
  type GroupName,
  groupOf,
  matches,
  ROWS,
} from "../components/board.ts";
import type { AssignmentView, Change, StatusView } from "../controller/views.ts";

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
  if (old !== null && old.position !== null && (job === null || job.position === null)) {
    next = moveUp(next, old.backend, old.position);
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
  if (index >= 0) return items.map((item, i) => i === index ? job : item).sort(compareIn(name));
  // A later page of a list keeps its rows: new ones belong to another page.
  if (!board.first) return items;
  // A list that was read on for scrolling stays as long as it is.
  const most = Math.max(ROWS[name], items.length);
  return [...items, job].sort(compareIn(name)).slice(0, most);
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
