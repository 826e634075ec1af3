import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { call } from "../support/calls.ts";
import { rejectsWith } from "../support/rejections.ts";
import { type Contract, gone, specOf } from "./backend_suite.ts";

/** What a backend promises of making executors, and of looking for them. */
export function createCases({ kind, test }: Contract): void {
  test("find() is undefined and list() is empty when nothing was made", async (_, backend) => {
    assert.equal(backend.name, kind);
    assert.equal(await backend.find(specOf("1", kind).name, call), undefined);
    assert.deepEqual(await backend.list(call), []);
  });

  test(
    "create() makes an executor that find() and list() show as it was asked for",
    async (_, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      assert.equal(made.name, spec.name);
      assert.notEqual(made.uid, "");
      assert.deepEqual(made.metadata, spec.metadata);
      assert.equal(made.ended, null);
      assert.equal(made.terminal, false);
      assert.equal(made.terminating, false);
      const found = await backend.find(spec.name, call);
      assert.equal(found?.uid, made.uid);
      assert.deepEqual(found?.metadata, spec.metadata);
      assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made.uid]);
    },
  );

  test("create() gives the program its launch environment exactly", async (world, backend) => {
    const spec = specOf("1", kind);
    await backend.create(spec, call);
    const environment = await world.environmentOf(spec.name);
    for (const [key, value] of Object.entries(spec.environment)) {
      assert.equal(environment[key], value, key);
    }
  });

  test(
    "create() is a conflict when the name is taken, and leaves the first one alone",
    async (_, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      await rejectsWith("conflict", backend.create(spec, call));
      assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made.uid]);
    },
  );

  test("create() makes one executor when it is called many times at once", async (_, backend) => {
    const spec = specOf("1", kind);
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => backend.create(spec, call)),
    );
    const made = results.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
    assert.equal(made.length, 1);
    for (const result of results) {
      if (result.status === "rejected") assert.equal(codeOf(result.reason), "conflict");
    }
    assert.deepEqual((await backend.list(call)).map(({ uid }) => uid), [made[0]?.uid]);
  });

  test(
    "create() whose answer is lost has made an executor that can be found",
    async (world, backend) => {
      const spec = specOf("1", kind);
      assert.ok(world.loseNextAnswer !== undefined);
      world.loseNextAnswer();
      await rejectsWith("unknown_outcome", backend.create(spec, call));
      const found = await backend.find(spec.name, call);
      assert.deepEqual(found?.metadata, spec.metadata);
      await rejectsWith("conflict", backend.create(spec, call));
    },
    "lost answers",
  );

  test(
    "every method rejects with the reason of an aborted signal and changes nothing",
    async (_, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      const reason = new Error("stopped by the test");
      const aborted = { signal: AbortSignal.abort(reason) };
      for (
        const attempt of [
          () => backend.find(spec.name, aborted),
          () => backend.create(specOf("2", kind), aborted),
          () => backend.bindIdentity(made, spec.assignment, aborted),
          () => backend.markTerminal(made, aborted),
          () => backend.list(aborted),
          () => backend.delete(made, aborted),
        ]
      ) {
        await assert.rejects(attempt, reason);
      }
      const [left, ...others] = await backend.list(call);
      assert.deepEqual(others, []);
      assert.equal(left?.uid, made.uid);
      assert.equal(left?.terminal, false);
      assert.equal(left?.terminating, false);
    },
  );

  test(
    "create() aborted while it runs leaves either nothing or a whole executor",
    async (_, backend) => {
      for (const turns of [0, 1, 3, 10, 30]) {
        const spec = specOf(String(turns + 1), kind);
        const controller = new AbortController();
        const making = backend.create(spec, { signal: controller.signal });
        const outcome = Promise.allSettled([making]);
        for (let turn = 0; turn < turns; turn++) {
          await new Promise((resolve) => setTimeout(resolve, 0));
        }
        controller.abort(new Error("stopped by the test"));
        await outcome;
        const found = await backend.find(spec.name, call);
        if (found === undefined) await backend.create(spec, call);
        else assert.deepEqual(found.metadata, spec.metadata);
      }
      assert.equal((await backend.list(call)).length, 5);
    },
  );

  test(
    "100 creates and deletes in a row, 10 at a time, leave nothing behind",
    async (_, backend) => {
      for (let round = 0; round < 10; round++) {
        await Promise.all(Array.from({ length: 10 }, async (_, index) => {
          const spec = specOf(String(round * 10 + index + 1), kind);
          await backend.delete(await backend.create(spec, call), call);
          await gone(backend, spec.name);
        }));
      }
      assert.deepEqual(await backend.list(call), []);
    },
  );
}

/** The code of a {@link BackendError}; undefined for anything else. */
function codeOf(error: unknown): string | undefined {
  return error instanceof BackendError ? error.code : undefined;
}
