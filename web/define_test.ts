import assert from "node:assert/strict";
import { definePage } from "./define.ts";
import type { RouteContext } from "./route_context.ts";

/** A stream that goes on while the handler reads; nothing else of a context is needed. */
function setup() {
  let newest = 1;
  const context = {
    now: Date.parse("2027-01-15T08:00:00Z"),
    lastEventId: () => `7-${newest}`,
    // The other members are not read by the pages below.
  } as RouteContext;
  const page = (own: { readonly lastEventId?: string }) =>
    definePage({
      path: "/x",
      handler() {
        newest++;
        return Promise.resolve({ kind: "found", data: { rows: 3, ...own } });
      },
      title: () => "",
      component: () => null,
      island: null,
      json: (data) => data,
    });
  return { context, page };
}

Deno.test("definePage() gives the place in the stream as it was before the handler read anything", async () => {
  const { context, page } = setup();
  const answer = await page({}).load(context);
  assert.equal(answer.kind, "found");
  const dated = { at: "2027-01-15T08:00:00.000Z", lastEventId: "7-1", rows: 3 };
  assert.deepEqual(answer.kind === "found" && answer.data.json, dated);
  assert.deepEqual(answer.kind === "found" && answer.data.data, dated);
});

Deno.test("definePage() leaves a page its own place in the stream when it has read that later", async () => {
  const { context, page } = setup();
  const answer = await page({ lastEventId: "7-2" }).load(context);
  assert.deepEqual(
    answer.kind === "found" && answer.data.json,
    { at: "2027-01-15T08:00:00.000Z", lastEventId: "7-2", rows: 3 },
  );
});
