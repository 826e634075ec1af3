import type { Board } from "../components/board.ts";
import { NowPage } from "../components/NowPage.tsx";
import type { Change, StatusView } from "../controller/views.ts";
import { applyChange, applyStatus } from "./apply_change.ts";
import { mount } from "./mount.tsx";

mount<Board>({
  component: NowPage,
  events: ["assignment", "backend", "leader", "status"],
  apply: (board, messages) =>
    messages.reduce((next, { event, at, old, new: now }) => {
      if (event === "status") return applyStatus(next, now as StatusView, at);
      // Our own server's words: `event` names the kind, and the shapes are those of Change.
      const change = { kind: event, old, new: now } as Change;
      return applyChange(next, change, at);
    }, board),
});
