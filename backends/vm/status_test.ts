import assert from "node:assert/strict";
import { call } from "../../tests/support/calls.ts";
import {
  sandboxMetadata,
  setupVmBackend,
  signedSpec,
} from "../../tests/support/vm_backend_setup.ts";

Deno.test("a sandbox that has not started has no identity target, and says why", async () => {
  await using world = setupVmBackend();
  const { backend, server } = world;
  const status = { state: "Pending", reason: "POOL_CAPACITY_EXHAUSTED", message: "no pod" };
  server.plant({ metadata: sandboxMetadata(signedSpec("1")), status });
  const found = await backend.find(signedSpec("1").name, call);
  assert.equal(found?.identityTarget, null);
  assert.deepEqual(found?.waiting, { code: "quota", detail: "POOL_CAPACITY_EXHAUSTED: no pod" });
});

for (
  const [state, waits, target] of [
    ["Pausing", /^Pausing: resume the sandbox/, true],
    ["Paused", /^Paused: resume the sandbox/, true],
    ["Resuming", /^Resuming: resume the sandbox/, true],
    ["Allocated", /^IP_ASSIGNED/, false],
    ["Pending", /^IP_ASSIGNED/, false],
    ["Hibernating", null, true],
    ["Running", null, true],
  ] as const
) {
  Deno.test(`a sandbox that is ${state} ${target ? "has" : "has no"} identity target`, async () => {
    await using world = setupVmBackend();
    const { server, backend } = world;
    const status = { state, reason: "IP_ASSIGNED", message: "" };
    server.plant({ metadata: sandboxMetadata(signedSpec("1")), status });
    const found = await backend.find(signedSpec("1").name, call);
    assert.equal(found?.phase, state);
    assert.equal(found?.identityTarget !== null, target);
    assert.equal(found?.ended, null);
    if (waits === null) assert.equal(found?.waiting, null);
    else assert.match(found?.waiting?.detail ?? "", waits);
  });
}
