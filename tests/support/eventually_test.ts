import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";

Deno.test("eventually() resolves to the first that a probe gives, whatever it has thrown before", async () => {
  let asked = 0;
  const probe = () => {
    if (++asked === 1) throw new Error("not yet");
    return asked === 3 && Promise.resolve("there");
  };
  assert.equal(await eventually(probe, { what: "it", everyMs: 1 }), "there");
});

Deno.test("eventually() throws after its time although a probe never answers", async () => {
  const never = () => new Promise<true>(() => {});
  await assert.rejects(
    eventually(never, { what: "a server", timeoutMs: 30, everyMs: 1, probeMs: 10 }),
    ({ message, cause }: Error) =>
      message === "Wait for a server: not within 30 ms" &&
      cause instanceof Error && cause.message === "Ask for it: no answer within 10 ms",
  );
});
