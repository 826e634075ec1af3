import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import { decodeAnnotations, encodeAnnotations } from "./annotations.ts";

const PREFIX = "ci.example.org";
const LABEL = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const LONG = { [`${PREFIX}/repository`]: "owner/repo", [`${PREFIX}/spiffe-id`]: "x".repeat(300) };

Deno.test("encodeAnnotations() writes JSON with sorted keys, base64url, numbered chunks of 63", () => {
  const chunks = encodeAnnotations({ b: "2", a: "1".repeat(60) }, PREFIX);
  assert.deepEqual(Object.keys(chunks), [
    `${PREFIX}/annotations-000`,
    `${PREFIX}/annotations-001`,
  ]);
  assert.equal(chunks[`${PREFIX}/annotations-000`]?.length, 63);
  const text = new TextDecoder().decode(
    Uint8Array.fromBase64(Object.values(chunks).join(""), { alphabet: "base64url" }),
  );
  assert.equal(text, `{"a":"${"1".repeat(60)}","b":"2"}`);
});

Deno.test("annotations of any text come back, and every chunk is a label", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" })), (
      annotations,
    ) => {
      const chunks = encodeAnnotations(annotations, PREFIX);
      for (const value of Object.values(chunks)) {
        assert.match(value, LABEL);
        assert.ok(value.length <= 63);
      }
      const back = decodeAnnotations({ other: "x", ...chunks }, PREFIX);
      assert.equal(back.kind, "decoded");
      if (back.kind === "decoded") assert.deepEqual({ ...back.annotations }, { ...annotations });
    }),
  );
});

Deno.test("decodeAnnotations() says when there is no chunk", () => {
  const detail = "sandbox annotation metadata is missing";
  assert.deepEqual(decodeAnnotations({ a: "b" }, PREFIX), { kind: "unreadable", detail });
});

Deno.test("decodeAnnotations() says when any chunk is missing or cut", () => {
  const chunks = encodeAnnotations(LONG, PREFIX);
  const detail = "sandbox annotation metadata chunks are incomplete";
  const keys = Object.keys(chunks);
  assert.ok(keys.length > 3);
  for (const missing of keys) {
    const { [missing]: _missing, ...left } = chunks;
    assert.deepEqual(decodeAnnotations(left, PREFIX), { kind: "unreadable", detail }, missing);
  }
  const cut = { ...chunks, [`${PREFIX}/annotations-000`]: "abc" };
  assert.deepEqual(decodeAnnotations(cut, PREFIX), { kind: "unreadable", detail });
});

Deno.test("decodeAnnotations() refuses what is no object of texts", () => {
  const detail = "sandbox annotation metadata cannot be decoded";
  for (const text of ["[1]", '{"a":1}', "{", "null"]) {
    const chunk = new TextEncoder().encode(text).toBase64({
      alphabet: "base64url",
      omitPadding: true,
    });
    const found = decodeAnnotations({ [`${PREFIX}/annotations-000`]: chunk }, PREFIX);
    assert.deepEqual(found, { kind: "unreadable", detail }, text);
  }
});

Deno.test("decodeAnnotations() bears whatever others write under our keys", () => {
  const key = (index: number) => `${PREFIX}/annotations-${String(index).padStart(3, "0")}`;
  const chunk = "A".repeat(63);
  const all = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [key(index), chunk]));
  assert.equal(decodeAnnotations(all, PREFIX).kind, "unreadable");
  const strange: readonly Record<string, string>[] = [
    { [key(0)]: "....", [key(1)]: "x" },
    { [key(0)]: "not.base64" },
    { [key(0)]: "_w" }, // Not UTF-8.
    { [key(0)]: "" },
    { [key(1)]: chunk },
    JSON.parse(`{"__proto__":"x","${key(0)}":"AAAA"}`),
  ];
  for (const metadata of strange) {
    assert.equal(decodeAnnotations(metadata, PREFIX).kind, "unreadable", JSON.stringify(metadata));
  }
  const ours = encodeAnnotations({ a: "b" }, PREFIX);
  const foreign = { "other.example/annotations-000": chunk, [`${PREFIX}/annotations-0000`]: chunk };
  const found = decodeAnnotations({ ...foreign, ...ours }, PREFIX);
  assert.deepEqual(found, { kind: "decoded", annotations: { a: "b" } });
});

Deno.test("decodeAnnotations() reads keys that every object inherits as any other", () => {
  const annotations = JSON.parse('{"__proto__":"p","constructor":"c"}');
  const found = decodeAnnotations(encodeAnnotations(annotations, PREFIX), PREFIX);
  assert.equal(found.kind, "decoded");
  if (found.kind !== "decoded") return;
  assert.deepEqual(Object.entries(found.annotations).sort(), [["__proto__", "p"], [
    "constructor",
    "c",
  ]]);
});
