import assert from "node:assert/strict";
import { errorText, messageOf } from "./error_text.ts";

Deno.test("messageOf() tells of errors and of whatever else was thrown", () => {
  assert.equal(messageOf(new Error("Publish", { cause: new Error("refused") })), "Publish");
  assert.equal(messageOf("a word"), "a word");
  assert.equal(messageOf(undefined), "undefined");
});

Deno.test("errorText() tells of the causes, too, and ends where they go in a circle", () => {
  const refused = new Error("refused", { cause: "port 1" });
  assert.equal(
    errorText(new Error("Publish", { cause: refused })),
    "Publish: refused: port 1",
  );
  assert.equal(errorText(new TypeError("")), "TypeError");
  const circle = new Error("round");
  circle.cause = circle;
  assert.equal(errorText(circle), Array(5).fill("round").join(": "));
});
