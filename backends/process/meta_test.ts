import assert from "node:assert/strict";
import { encodeMeta, type Meta, parseMeta, prefixOf, withTerminal } from "./meta.ts";
import { parseStat } from "./proc.ts";

const META: Meta = {
  name: "ci-1",
  backend: "vm",
  uid: "7-99-ab",
  process: { pid: 7, startTime: "99" },
  bootId: "boot",
  userId: null,
  createdAt: 1,
  metadata: { labels: { "x.org/runner": "true" }, annotations: { "x.org/job-key": "build" } },
};

Deno.test("parseMeta() reads what encodeMeta() wrote", () => {
  assert.deepEqual(parseMeta(encodeMeta(META)), META);
  const own = { ...META, userId: 61_000 };
  assert.deepEqual(parseMeta(encodeMeta(own)), own);
});

Deno.test("parseMeta() is undefined for anything else", () => {
  const whole: Record<string, unknown> = JSON.parse(encodeMeta(META));
  for (const text of ["", "{", "null", "[]", "1", JSON.stringify({ ...whole, version: 2 })]) {
    assert.equal(parseMeta(text), undefined, text);
  }
  for (const key of Object.keys(whole)) {
    assert.equal(parseMeta(JSON.stringify({ ...whole, [key]: { odd: 1 } })), undefined, key);
    const { [key]: _, ...rest } = whole;
    assert.equal(parseMeta(JSON.stringify(rest)), undefined, key);
  }
});

Deno.test("withTerminal() adds the label under the prefix that the metadata uses", () => {
  assert.equal(prefixOf(META.metadata), "x.org");
  assert.equal(withTerminal(META.metadata).labels["x.org/terminal"], "true");
  assert.deepEqual(withTerminal({ labels: {}, annotations: {} }), { labels: {}, annotations: {} });
});

Deno.test("parseStat() reads a line whose program name holds blanks and brackets", () => {
  const rest = Array.from({ length: 30 }, (_, index) => String(index)).join(" ");
  const fields = rest.split(" ");
  assert.deepEqual(parseStat(`42 (a) b (c) S ${rest}\n`), {
    pid: 42,
    state: "S",
    session: Number(fields[2]),
    startTime: fields[18],
  });
  for (const text of ["", "42", "x (sh) S 1 2 3", "42 (sh) S 1"]) {
    assert.equal(parseStat(text), undefined);
  }
});
