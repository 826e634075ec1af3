import assert from "node:assert/strict";
import { QueueError } from "../controller/queue.ts";
import type { PageQuery } from "../controller/views/views.ts";
import { loadList, readFilters } from "./list_page.ts";

const context = (query: string) => ({
  url: new URL(`http://localhost/history${query}`),
});
const page = ({ cursor }: PageQuery) => {
  if (cursor !== null && !cursor.startsWith("from")) {
    return Promise.reject(new RangeError("none of ours"));
  }
  return Promise.resolve({ items: [cursor], nextCursor: null, total: 1 });
};

Deno.test("readFilters() leaves out what is empty, and cuts what is too long", () => {
  const query = new URLSearchParams({ a: " x ", b: "", c: "y".repeat(500) });
  const { a, b, c, d } = readFilters(query, ["a", "b", "c", "d"]);
  assert.deepEqual([a, b, c?.length, d], ["x", null, 300, null]);
});

Deno.test("loadList() takes the cursor of the URL", async () => {
  const list = await loadList(context("?cursor=from5"), {}, page);
  assert.deepEqual([list.items, list.first, list.badCursor], [["from5"], false, false]);
});

for (const cursor of ["nonsense", "%00", "a b"]) {
  Deno.test(`loadList() begins anew with the cursor "${cursor}", and says so`, async () => {
    const list = await loadList(context(`?cursor=${cursor}`), {}, page);
    assert.deepEqual([list.items, list.first, list.badCursor], [[null], true, true]);
  });
}

for (
  const away of [
    new QueueError("unavailable", "Read stored messages: NATS is away"),
    new DOMException("Timed out after 5000 ms", "TimeoutError"),
  ]
) {
  Deno.test(`loadList() shows the page all the same, and says that there is no list: ${away.name}`, async () => {
    const list = await loadList(context(""), {}, () => Promise.reject(away));
    assert.deepEqual([list.items, list.unavailable], [[], true]);
  });
}

Deno.test("loadList() does not take a fault of ours for an empty list", async () => {
  const fault = new TypeError("cannot read properties of undefined");
  await assert.rejects(loadList(context(""), {}, () => Promise.reject(fault)), fault);
});
