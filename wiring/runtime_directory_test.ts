import assert from "node:assert/strict";
import { leaveRuntimeDirectory, runtimeDirectory, runtimePath } from "./runtime_directory.ts";

Deno.test("runtimeDirectory() is below STATE_DIR when all executors are ours, and open to others else", async () => {
  const temporary = await Deno.makeTempDir();
  assert.equal(runtimePath("/a/state", { otherUsers: false }), "/a/state/run");
  await Deno.chmod(temporary, 0o711);
  const directory = await runtimeDirectory("/a/state", { otherUsers: true, temporary });
  assert.equal(directory, runtimePath("/a/state", { otherUsers: true, temporary }));
  assert.equal(((await Deno.stat(directory)).mode ?? 0) & 0o777, 0o711);
  assert.notEqual(directory, runtimePath("/b/state", { otherUsers: true, temporary }));
  await Deno.remove(temporary, { recursive: true });
});

Deno.test("leaveRuntimeDirectory() removes it unless an executor is left", async () => {
  const directory = await Deno.makeTempDir();
  const options = { otherUsers: true, backends: ["pod", "vm"] };
  await Deno.mkdir(`${directory}/pod/ci-1`, { recursive: true });
  await leaveRuntimeDirectory(directory, options);
  assert.ok((await Deno.stat(`${directory}/pod/ci-1`)).isDirectory);

  await Deno.remove(`${directory}/pod/ci-1`);
  await Deno.writeTextFile(`${directory}/pod/.last-user`, "7");
  await leaveRuntimeDirectory(directory, { ...options, otherUsers: false });
  assert.ok((await Deno.stat(directory)).isDirectory);
  await leaveRuntimeDirectory(directory, options);
  await assert.rejects(Deno.stat(directory), Deno.errors.NotFound);
});
