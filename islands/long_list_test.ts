import assert from "node:assert/strict";
import type { Board } from "../components/board.ts";
import { jobOf } from "../tests/fakes/sample_jobs.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { loadBoard, parseBoardQuery } from "../web/load_board.ts";
import { createLongList } from "./long_list.ts";

const NOW = Date.parse("2027-01-15T08:00:00Z");

/** A page over the fake views that answers when the test lets it. */
async function setup(waiting: number) {
  const views = createFakeViews({ clock: { now: () => NOW } }, { jobs: [], waiting });
  const source = { views, lastEventId: () => "1-0", now: () => NOW };
  const load = (href: string) =>
    loadBoard(source, parseBoardQuery(new URL(href, "http://x").searchParams));
  let board = await load("/");
  const hrefs: string[] = [];
  const gates: PromiseWithResolvers<boolean>[] = [];
  const later: (() => void)[] = [];
  const stop = new AbortController();
  const list = createLongList({
    signal: stop.signal,
    read: () => board,
    write: (next) => board = next,
    later: (run) => void later.push(run),
    async fetch(href) {
      hrefs.push(href);
      const gate = Promise.withResolvers<boolean>();
      gates.push(gate);
      const page = await load(href);
      return await gate.promise ? page : undefined;
    },
  });
  const answer = async (well = true) => {
    gates.shift()?.resolve(well);
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return {
    list,
    hrefs,
    later,
    answer,
    board: () => board,
    set: (next: Board) => board = next,
  };
}

Deno.test("createLongList() reads on until there are as many as wanted, each once", async () => {
  const { list, answer, board, hrefs } = await setup(1_200);
  assert.equal(board().waiting.items.length, 100);
  list.want("waiting", 700);
  list.want("waiting", 700);
  await answer();
  assert.equal(board().waiting.items.length, 500);
  await answer();
  assert.equal(board().waiting.items.length, 1_000);
  await answer();
  assert.equal(hrefs.length, 2, "one answer at a time, and no more than wanted");
  assert.equal(new Set(board().waiting.items.map(({ id }) => id)).size, 1_000);
});

Deno.test("createLongList() leaves out what the stream has told of since it asked", async () => {
  const { list, answer, board } = await setup(300);
  const gone = jobOf({ task: 10_150, state: "stored", age: 1 }, NOW);
  list.want("waiting", 300);
  list.told([gone.id]);
  await answer();
  assert.equal(board().waiting.items.some(({ id }) => id === gone.id), false);
  assert.equal(board().waiting.items.length, 299);
});

Deno.test("createLongList() begins anew after the page was read anew", async () => {
  const { list, answer, board, set, hrefs } = await setup(1_200);
  const first = board();
  list.want("waiting", 1_200);
  await answer();
  set(first);
  list.reset();
  await answer(); // Of before: not taken.
  assert.equal(board().waiting.items.length, 100);
  await answer();
  assert.equal(board().waiting.items.length, 500);
  assert.doesNotMatch(hrefs.at(2) ?? "", /cursor=/);
});

Deno.test("createLongList() asks again later when there is no answer", async () => {
  const { list, answer, board, later } = await setup(300);
  list.want("waiting", 300);
  await answer(false);
  assert.equal(later.length, 1);
  later[0]?.();
  await answer();
  assert.equal(board().waiting.items.length, 300);
});
