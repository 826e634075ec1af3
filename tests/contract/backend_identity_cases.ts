import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { call } from "../support/calls.ts";
import { rejectsWith } from "../support/rejections.ts";
import { type Contract, gone, specOf, withTarget } from "./backend_suite.ts";

/** What a backend promises of executors' identities. */
export function identityCases({ kind, test }: Contract): void {
  test(
    "bindIdentity() gives the executor the assignment's SPIFFE ID, again and again",
    async (world, backend) => {
      const [one, two] = [specOf("1", kind), specOf("2", kind)];
      const made = await backend.create(one, call);
      await backend.create(two, call);
      const ready = await withTarget(backend, made);
      await backend.bindIdentity(ready, one.assignment, call);
      await backend.bindIdentity(ready, one.assignment, call);
      assert.equal(await world.boundTo(one.name), one.assignment.identity.spiffeId);
      assert.equal(await world.boundTo(two.name), null);
    },
  );

  test(
    "list() tells whether the identity is bound, and bindIdentity() binds again what was lost",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const listed = async () => (await backend.list(call))[0]?.identityBound;
      const made = await withTarget(backend, await backend.create(spec, call));
      assert.equal(await listed(), false);
      await backend.bindIdentity(made, spec.assignment, call);
      assert.equal(await listed(), true);
      assert.ok(world.unbind !== undefined);
      await world.unbind(spec.name);
      assert.equal(await listed(), false);
      await backend.bindIdentity(made, spec.assignment, call);
      assert.equal(await listed(), true);
      assert.equal(await world.boundTo(spec.name), spec.assignment.identity.spiffeId);
    },
    "bindings that can be seen",
  );

  test("bindIdentity() refuses another assignment's SPIFFE ID", async (world, backend) => {
    const [one, two] = [specOf("1", kind), specOf("2", kind)];
    const made = await withTarget(backend, await backend.create(one, call));
    await rejectsWith("invalid", backend.bindIdentity(made, two.assignment, call));
    assert.equal(await world.boundTo(one.name), null);
  });

  test(
    "bindIdentity() refuses an executor that is gone, also when the name is taken again",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const old = await withTarget(backend, await backend.create(spec, call));
      await backend.delete(old, call);
      await assert.rejects(backend.bindIdentity(old, spec.assignment, call), BackendError);
      await gone(backend, spec.name);
      const next = await backend.create(spec, call);
      assert.notEqual(next.uid, old.uid);
      await rejectsWith("conflict", backend.bindIdentity(old, spec.assignment, call));
      assert.equal(await world.boundTo(spec.name), null);
    },
  );
}
