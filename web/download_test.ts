import assert from "node:assert/strict";
import { csvFile, jsonFile, readAll } from "./download.ts";

const at = { now: Date.parse("2027-01-15T08:00:00Z") };

Deno.test("csvFile() quotes what needs it, and lets no table compute what somebody wrote", async () => {
  const rows = [
    { note: "=1+1", n: -3, list: { a: "x,y" }, none: null },
    { note: 'say "hi"\r\nthere', n: 0, list: [], none: undefined },
    { note: "@x", n: 1, list: "-y", none: "+z" },
  ];
  const answer = csvFile("audit", rows, ["note", "n", "list", "none"], at);
  assert.equal(
    await answer.text(),
    [
      "note,n,list,none",
      `'=1+1,-3,"{""a"":""x,y""}",`,
      `"say ""hi""\r\nthere",0,[],`,
      `'@x,1,'-y,'+z`,
      "",
    ].join("\r\n"),
  );
  assert.equal(
    answer.headers.get("content-disposition"),
    'attachment; filename="audit-20270115T080000Z.csv"',
  );
});

Deno.test("jsonFile() is a file that is not kept by anybody on the way", async () => {
  const answer = jsonFile("history", [{ a: 1 }], at);
  assert.deepEqual(await answer.json(), [{ a: 1 }]);
  assert.equal(answer.headers.get("cache-control"), "no-store");
});

Deno.test("readAll() reads page after page, but no more than ten thousand rows", async () => {
  let pages = 0;
  const rows = await readAll(({ limit }) => {
    pages++;
    const items = Array.from({ length: limit }, (_, i) => i);
    return Promise.resolve({ items, nextCursor: `c${pages}`, total: 0 });
  });
  assert.deepEqual([rows.length, pages], [10_000, 20]);
});
