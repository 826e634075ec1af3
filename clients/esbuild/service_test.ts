import assert from "node:assert/strict";
import { withEsbuild } from "./service.ts";

/** The library's words (0.28) when its child has been killed. */
const DEATHS = ["The service was stopped", "The service is no longer running: write EPIPE"];

Deno.test("withEsbuild() runs once more what the end of esbuild's child has cut off", async () => {
  for (const words of DEATHS) {
    let runs = 0;
    const use = () => ++runs === 1 ? Promise.reject(new Error(words)) : Promise.resolve("built");
    assert.equal(await withEsbuild(use, undefined), "built");
    await assert.rejects(withEsbuild(() => Promise.reject(new Error(words)), undefined), {
      message: words,
    });
  }
});

Deno.test("withEsbuild() runs what does not compile once", async () => {
  let runs = 0;
  const use = () => {
    runs++;
    return Promise.reject(new Error("x.ts:1:1: ERROR: Unexpected"));
  };
  await assert.rejects(withEsbuild(use, undefined), /Unexpected/);
  assert.equal(runs, 1);
});

Deno.test("withEsbuild() ends with its signal while the child does not answer", async () => {
  const stop = new AbortController();
  const never = Promise.withResolvers<never>().promise;
  const running = withEsbuild(() => never, stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(running, /^Error: stopped$/);
  await assert.rejects(
    withEsbuild(() => Promise.reject(new Error("The service was stopped")), stop.signal),
    /^Error: stopped$/,
  );
});
