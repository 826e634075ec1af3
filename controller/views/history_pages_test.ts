import assert from "node:assert/strict";
import { infoOf } from "../../tests/support/ledger_world.ts";
import { historyPage, type ReadEvents } from "./history_pages.ts";
import type { StoredEntry } from "../journal.ts";

/** A stream of `count` entries; every hundredth is a `parked` one, every second one of `vm`. */
function setup(count: number) {
  const stored = Array.from({ length: count }, (_, i): StoredEntry => ({
    seq: i + 1,
    at: 1_000 + i,
    event: (i + 1) % 100 === 0 ? "parked" : "received",
    component: "worker",
    backend: i % 2 === 0 ? "pod" : "vm",
    assignment: infoOf(1 + i % 50).id,
    executor: null,
    phase: null,
    retryDelayMs: 0,
    detail: null,
  }));
  let reads = 0;
  const read: ReadEvents = ({ assignment, beforeSeq = Infinity, limit }) => {
    reads++;
    if (assignment !== undefined) {
      return Promise.resolve(stored.filter((e) => e.assignment === assignment).slice(0, limit));
    }
    const found = stored.filter(({ seq }) => seq < beforeSeq).toReversed();
    return Promise.resolve(found.slice(0, limit));
  };
  const all = async (query: Omit<Parameters<typeof historyPage>[1], "limit" | "cursor">) => {
    const seqs: (number | null)[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const page: Awaited<ReturnType<typeof historyPage>> = await historyPage(read, {
        ...query,
        limit: 7,
        cursor,
      });
      assert.ok(page.items.length <= 7);
      seqs.push(...page.items.map(({ seq }) => seq));
      cursor = page.nextCursor;
    } while (cursor !== null && ++pages < 1_000);
    return seqs;
  };
  return { stored, all, read, reads: () => reads };
}

Deno.test("historyPage() has every entry once, newest first, whatever is filtered", async () => {
  const { stored, all } = setup(1_300);
  const newest = (wanted: (entry: StoredEntry) => boolean) =>
    stored.filter(wanted).map(({ seq }) => seq).toReversed();
  assert.deepEqual(await all({}), newest(() => true));
  assert.deepEqual(await all({ event: "parked" }), newest(({ event }) => event === "parked"));
  assert.deepEqual(await all({ backend: "vm" }), newest(({ backend }) => backend === "vm"));
  assert.deepEqual(
    await all({ assignment: infoOf(3).id }),
    newest(({ assignment }) => assignment === infoOf(3).id),
  );
});

Deno.test("historyPage() looks at a bounded part of a long stream, and goes on from there", async () => {
  const { read, reads } = setup(9_000);
  const page = await historyPage(read, { event: "lost", limit: 7, cursor: null });
  assert.deepEqual([page.items, page.nextCursor, reads()], [[], "5001", 8]);
});

Deno.test("historyPage() finds nothing under a name that is no assignment's", async () => {
  const { read, reads } = setup(10);
  const page = await historyPage(read, { assignment: "../x", limit: 7, cursor: null });
  assert.deepEqual([page.items, page.nextCursor, reads()], [[], null, 0]);
});
