import type { Board, GroupName } from "../components/board.ts";
import { LongListContext } from "../components/LongRows.tsx";
import { NowPage } from "../components/NowPage.tsx";
import type { Change, StatusView } from "../controller/views/views.ts";
import { isObject } from "../lib/json_object.ts";
import { applyChange, applyStatus } from "./apply_change.ts";
import { createLongList, type LongList } from "./long_list.ts";
import { mount } from "./mount.tsx";
import { readPage } from "./read_page.ts";

let longList: LongList | null = null;
const want = (name: GroupName, until: number) => longList?.want(name, until);

function LiveNowPage({ data }: { data: Board }) {
  return (
    <LongListContext.Provider value={want}>
      <NowPage data={data} />
    </LongListContext.Provider>
  );
}

mount<Board>({
  component: LiveNowPage,
  events: ["assignment", "backend", "leader", "status"],
  start({ data, signal }) {
    longList = createLongList({
      signal,
      read: () => data.value,
      write: (board) => data.value = board,
      later: (run, ms) => void setTimeout(run, ms),
      fetch: (href) => readPage(href, signal),
    });
  },
  onFresh: () => longList?.reset(),
  apply(board, messages) {
    // Another process tells from now on, or this one of more: its lists do not follow on what was read.
    if (messages.some(({ event }) => event === "leader")) return "refetch";
    longList?.told(
      messages.flatMap(({ event, old, new: now }) =>
        event === "assignment" ? [idOf(now) ?? idOf(old) ?? ""] : []
      ),
    );
    return messages.reduce((next, { event, at, old, new: now }) => {
      if (event === "status") return applyStatus(next, now as StatusView, at);
      // Our own server's words: `event` names the kind, and the shapes are those of Change.
      const change = { kind: event, old, new: now } as Change;
      return applyChange(next, change, at);
    }, board);
  },
});

function idOf(view: unknown): string | undefined {
  return isObject(view) && view.id !== undefined ? String(view.id) : undefined;
}
