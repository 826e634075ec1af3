import assert from "node:assert/strict";
import { isObject, objectOrEmpty, ownProperty } from "./json_object.ts";

Deno.test("isObject() is false for arrays, null and everything that is no object", () => {
  assert.equal(isObject({}), true);
  for (const other of [[], null, undefined, "{}", 1, () => {}]) {
    assert.equal(isObject(other), false);
  }
});

Deno.test("objectOrEmpty() gives an empty object for anything else", () => {
  assert.deepEqual(objectOrEmpty({ a: 1 }), { a: 1 });
  assert.deepEqual(objectOrEmpty([1]), {});
});

Deno.test("ownProperty() does not see what every object inherits", () => {
  assert.equal(ownProperty({ a: 1 }, "a"), 1);
  assert.equal(ownProperty({ a: 1 }, "constructor"), undefined);
  assert.equal(ownProperty([1], "0"), undefined);
  assert.equal(ownProperty(null, "a"), undefined);
});
