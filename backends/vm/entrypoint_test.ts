import assert from "node:assert/strict";
import { EXECUTOR_ENTRYPOINT } from "./entrypoint.ts";

Deno.test("EXECUTOR_ENTRYPOINT is the image's", async () => {
  const path = new URL("../../deploy/executor.Dockerfile", import.meta.url);
  const line = /^ENTRYPOINT (\[.*\])$/m.exec(await Deno.readTextFile(path))?.[1];
  assert.deepEqual(EXECUTOR_ENTRYPOINT, JSON.parse(line ?? "null"));
});
