import assert from "node:assert/strict";
import type { ExecutorSpec } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { call } from "../../tests/support/calls.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { refusal } from "../../tests/support/rejections.ts";
import { sandboxMetadata, signedSpec, vmBackend } from "../../tests/support/vm_backend_setup.ts";
import { type Sandbox, SandboxError, type Sandboxes } from "./sandboxes.ts";

function sandboxOf(spec: ExecutorSpec, id: string): Sandbox {
  return {
    id,
    state: "Pending",
    reason: "BATCHSANDBOX_PENDING",
    message: "",
    metadata: sandboxMetadata(spec),
    createdAt: 1,
    expiresAt: null,
  };
}

/** A server whose creates are answered when the test says so. */
function setup() {
  const clock = createFakeClock();
  const there = new Map<string, Sandbox>();
  const creates: PromiseWithResolvers<Sandbox>[] = [];
  const api: Sandboxes = {
    list: (metadata) =>
      Promise.resolve(
        [...there.values()].filter((sandbox) =>
          Object.entries(metadata).every(([key, value]) => sandbox.metadata[key] === value)
        ),
      ),
    get: (id) => Promise.resolve(there.get(id)),
    create() {
      const create = Promise.withResolvers<Sandbox>();
      creates.push(create);
      return create.promise;
    },
    patch: (id) => Promise.resolve(there.has(id)),
    delete: (id) => Promise.resolve(there.delete(id)),
  };
  return { clock, there, creates, backend: vmBackend(api, { clock }) };
}

/** A create that waits at the server, and whose caller has left. */
async function leave(world: ReturnType<typeof setup>, spec: ExecutorSpec): Promise<void> {
  const controller = new AbortController();
  const reason = new Error("cancelled");
  const making = world.backend.create(spec, controller);
  await eventually(() => world.creates.length === 1, { what: "the request" });
  controller.abort(reason);
  await assert.rejects(making, reason);
}

Deno.test("find() waits ten seconds for a create that its caller has left, and does not say none", async () => {
  const world = setup();
  await leave(world, signedSpec("1"));
  const finding = refusal(world.backend.find(signedSpec("1").name, call));
  for (let second = 0; second < 10; second++) await world.clock.advance(1_000);
  const error = await finding;
  assert.equal(error.code, "unavailable");
  assert.match(error.message, /it is being made, and the server has not answered yet/);
  world.creates[0]?.reject(new SandboxError("start_timeout", "late"));
});

Deno.test("find() shows what a create makes as soon as it is listed", async () => {
  const world = setup();
  await leave(world, signedSpec("1"));
  const finding = world.backend.find(signedSpec("1").name, call);
  await world.clock.advance(500);
  world.there.set("a", sandboxOf(signedSpec("1"), "a"));
  await world.clock.advance(500);
  assert.equal((await finding)?.uid, "a");
  world.creates[0]?.reject(new SandboxError("start_timeout", "late"));
});

Deno.test("one that is deleted while it is made keeps nobody waiting, and its pool does not rest", async () => {
  const world = setup();
  const { backend, there, creates } = world;
  const spec = signedSpec("1");
  await leave(world, spec);
  there.set("a", sandboxOf(spec, "a"));
  const found = await backend.find(spec.name, call);
  assert.equal(found?.uid, "a");
  await backend.delete({ name: spec.name, uid: "a" }, call);
  assert.equal(await backend.find(spec.name, call), undefined);
  // The server has looked for it until its own time limit.
  creates[0]?.reject(new SandboxError("start_timeout", "POD_READY_TIMEOUT"));
  await world.clock.advance(1_000);
  const other = backend.create(signedSpec("2"), call);
  await eventually(() => creates.length === 2, { what: "another request" });
  creates[1]?.resolve({ ...sandboxOf(signedSpec("2"), "b"), state: "Running" });
  assert.equal((await other).uid, "b");
});
