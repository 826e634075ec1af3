import assert from "node:assert/strict";
import { en } from "./i18n/en.ts";
import { zh } from "./i18n/zh.ts";
import { clockTime, coarse, duration, fill, type Lang, number, plural } from "./lang.ts";

const english: Lang = { locale: "en", dict: en };
const chinese: Lang = { locale: "zh-CN", dict: zh };

Deno.test("duration() uses at most two units", () => {
  const cases: readonly (readonly [number, string])[] = [
    [0, "0 ms"],
    [-5, "0 ms"],
    [640, "640 ms"],
    [999.6, "1.0 s"],
    [1840, "1.8 s"],
    [9949, "9.9 s"],
    [9950, "10 s"],
    [59_600, "1 m 00 s"],
    [192_000, "3 m 12 s"],
    [7_500_000, "2 h 05 m"],
    [273_600_000, "3 d 4 h"],
  ];
  for (const [ms, text] of cases) assert.equal(duration(english, ms), text);
  assert.equal(duration(chinese, 192_000), "3 分 12 秒");
});

Deno.test("coarse() shows whole seconds", () => {
  assert.equal(coarse(english, 1840), "2 s");
  assert.equal(coarse(english, 0), "0 s");
});

Deno.test("fill() puts values in and leaves unknown names", () => {
  assert.equal(fill("{a} of {b}, {c}", { a: 1, b: "x" }), "1 of x, {c}");
  assert.equal(fill("{a}", { a: "{b}", b: "no" }), "{b}");
});

Deno.test("plural() and number() follow the language", () => {
  assert.equal(plural(english, en.row.failures, 1), "1 failure");
  assert.equal(plural(english, en.row.failures, 1234), "1,234 failures");
  assert.equal(plural(chinese, zh.row.failures, 1), "失败 1 次");
  assert.equal(number(english, 10_008), "10,008");
});

Deno.test("clockTime() adds the date when it is another day", () => {
  const now = Date.parse("2027-01-15T08:00:00Z");
  assert.equal(clockTime("2027-01-15T07:03:04.123Z", now), "07:03:04");
  assert.equal(clockTime("2027-01-14T23:03:04Z", now), "01-14 23:03:04");
  assert.equal(clockTime("rubbish", now), "rubbish");
});

Deno.test("both languages fill in the same names in every text", () => {
  const names = (value: unknown): unknown =>
    typeof value === "string"
      ? [...new Set(value.match(/\{\w+\}/g) ?? [])].sort()
      : Object.fromEntries(Object.entries(value ?? {}).map(([key, each]) => [key, names(each)]));
  assert.deepEqual(names(zh), names(en));
});
