import assert from "node:assert/strict";
import { fc } from "../tests/support/property.ts";
import { inert, safeLink } from "./inert.ts";

Deno.test("inert() shows control characters and terminal escapes in place of obeying them", () => {
  assert.equal(inert("\u001b[31mred\u001b[0m"), "^[[31mred^[[0m");
  assert.equal(inert("a\u0000b\r\u007f"), "a^@b^M^?");
  assert.equal(inert("\u009b31m"), "⟨U+009B⟩31m");
  assert.equal(inert("line\n\ttab"), "line\n\ttab");
});

Deno.test("inert() spells out what turns or hides text", () => {
  assert.equal(inert("acme/\u202Egnp.exe"), "acme/⟨U+202E⟩gnp.exe");
  assert.equal(inert("a\u200bb\u2066c\ufeff"), "a⟨U+200B⟩b⟨U+2066⟩c⟨U+FEFF⟩");
  assert.equal(inert("\u{e0041}"), "⟨U+E0041⟩");
  assert.equal(inert("\ud800x"), "\ufffdx");
});

Deno.test("inert() leaves what people write alone", () => {
  for (
    const text of ["构建与测试", "naïve — “ok” 👩‍🚀".replace("\u200d", ""), "العربية", "<b>&amp;"]
  ) {
    assert.equal(inert(text), text);
  }
});

Deno.test("inert() leaves no dangerous character in any string, and is stable", () => {
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
    const shown = inert(text);
    assert.ok(shown.isWellFormed());
    // deno-lint-ignore no-control-regex -- none of these may be left
    assert.ok(!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(shown));
    assert.ok(!/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(shown));
    assert.equal(inert(shown), shown);
  }));
});

Deno.test("inert() cuts what is too long", () => {
  assert.equal(inert("abcdef", 3), "abc…");
});

Deno.test("safeLink() takes http and https without credentials, and nothing else", () => {
  assert.equal(safeLink("https://git.example.org/a")?.host, "git.example.org");
  assert.equal(safeLink("http://localhost:3000/a/b")?.port, "3000");
  const bad = [
    null,
    "",
    "/relative",
    "javascript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,x",
  ];
  bad.push("JAVASCRIPT:alert(1)", "java\nscript:alert(1)", "ftp://a/b", "file:///etc/passwd");
  bad.push("https://user:pass@git.example.org/", "https://git.example.org@evil.example/");
  for (const url of bad) assert.equal(safeLink(url), undefined, String(url));
});
