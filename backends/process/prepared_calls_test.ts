import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { createPreparedCalls } from "./prepared_calls.ts";

const { signal } = new AbortController();

Deno.test("call() prepares once for all, and again after that has failed", async () => {
  let prepared = 0;
  const calls = createPreparedCalls(() => {
    prepared++;
    return prepared === 1 ? Promise.reject(new Error("disk full")) : Promise.resolve("ready");
  });
  await assert.rejects(
    calls.call("List", signal, () => Promise.resolve()),
    /^BackendError: List: disk full/,
  );
  const run = () => calls.call("List", signal, (what) => Promise.resolve(what));
  assert.deepEqual(await Promise.all([run(), run()]), ["ready", "ready"]);
  assert.equal(prepared, 2);
});

Deno.test("call() words every failure by its action, and leaves a BackendError as it is", async () => {
  const calls = createPreparedCalls(() => Promise.resolve());
  const failing = (error: Error) => calls.call("Find it", signal, () => Promise.reject(error));
  const denied = new Deno.errors.PermissionDenied("closed");
  await assert.rejects(failing(denied), { code: "refused", message: "Find it: closed" });
  await assert.rejects(failing(new Error("odd")), { code: "unavailable", message: "Find it: odd" });
  const own = new BackendError("conflict", "taken");
  await assert.rejects(failing(own), (error) => error === own);
});

Deno.test("call() rejects with the signal's reason once that has aborted, whatever the failure", async () => {
  const calls = createPreparedCalls(() => Promise.resolve());
  const stop = new AbortController();
  const failing = calls.call("Find it", stop.signal, () => {
    stop.abort(new Error("stopped"));
    return Promise.reject(new Error("odd"));
  });
  await assert.rejects(failing, /stopped/);
});

Deno.test("disposing waits for the calls under way", async () => {
  const calls = createPreparedCalls(() => Promise.resolve());
  const work = Promise.withResolvers<void>();
  const call = calls.call("Make it", signal, () => work.promise);
  let disposed = false;
  const disposing = calls[Symbol.asyncDispose]().then(() => void (disposed = true));
  await Promise.resolve();
  assert.equal(disposed, false);
  work.resolve();
  await Promise.all([call, disposing]);
});
