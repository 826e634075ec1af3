import assert from "node:assert/strict";
import { BackendError, type ExecutorChange } from "../../controller/backend.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { rejectsWith } from "../support/rejections.ts";
import { type Contract, gone, PREFIX, specOf, withTarget } from "./backend_suite.ts";

/** What a backend promises of the ends of executors, by themselves or by us, and of changes. */
export function endCases({ kind, test }: Contract): void {
  test(
    "markTerminal() is durable, visible as a label, and may be repeated",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const made = await backend.create(spec, call);
      await backend.markTerminal(made, call);
      await backend.markTerminal(made, call);
      const again = await (await world.reopen()).find(spec.name, call);
      assert.equal(again?.terminal, true);
      assert.equal(again?.metadata.labels[`${PREFIX}/terminal`], "true");
      assert.equal(again?.uid, made.uid);
    },
  );

  test(
    "markTerminal() does nothing when the executor is gone or is another one",
    async (_, backend) => {
      const spec = specOf("1", kind);
      await backend.markTerminal({ name: spec.name, uid: "other" }, call);
      await backend.create(spec, call);
      await backend.markTerminal({ name: spec.name, uid: "other" }, call);
      assert.equal((await backend.find(spec.name, call))?.terminal, false);
    },
  );

  test("an executor that ends by itself says how, with its last lines", async (world, backend) => {
    const spec = specOf("1", kind);
    await backend.create(spec, call);
    await world.end(spec.name, { code: 3, line: "it went wrong" });
    const ended = await eventually(
      async () => (await backend.find(spec.name, call))?.ended ?? undefined,
      {
        what: "the end of the executor",
      },
    );
    const { tellsEnd = "everything" } = world;
    assert.equal(ended.code, "executor_failed");
    assert.equal(ended.exitCode, tellsEnd === "failure" ? null : 3);
    assert.match(ended.detail, tellsEnd === "failure" ? /fail/i : /exit code 3/);
    if (tellsEnd === "everything") assert.ok(ended.lastLines.includes("it went wrong"));
    else assert.deepEqual(ended.lastLines, []);
    await rejectsWith("conflict", backend.create(spec, call));
  });

  test(
    "list() shows an object that cannot be read beside the others, and it can be deleted",
    async (world, backend) => {
      const [one, two] = [specOf("1", kind), specOf("2", kind)];
      await backend.create(one, call);
      await backend.create(two, call);
      await world.corrupt(one.name);
      const all = await backend.list(call);
      assert.deepEqual(all.map((executor) => executor.name).sort(), [one.name, two.name].sort());
      const damaged = all.find((executor) => executor.name === one.name);
      assert.ok(damaged !== undefined);
      assert.notDeepEqual(damaged.metadata, one.metadata);
      await backend.delete(damaged, call);
      await gone(backend, one.name);
      assert.deepEqual((await backend.list(call)).map((executor) => executor.name), [two.name]);
    },
  );

  test("delete() removes executor and identity, and frees the name", async (world, backend) => {
    const spec = specOf("1", kind);
    const made = await withTarget(backend, await backend.create(spec, call));
    await backend.bindIdentity(made, spec.assignment, call);
    await backend.delete(made, call);
    await gone(backend, spec.name);
    assert.equal(await world.boundTo(spec.name), null);
    await backend.delete(made, call);
    assert.notEqual((await backend.create(spec, call)).uid, made.uid);
  });

  test(
    "delete() leaves an executor of another uid alone, with its identity",
    async (world, backend) => {
      const spec = specOf("1", kind);
      const made = await withTarget(backend, await backend.create(spec, call));
      await backend.bindIdentity(made, spec.assignment, call);
      await backend.delete({ name: spec.name, uid: "other" }, call).catch((error) => {
        assert.equal(codeOf(error), "conflict");
      });
      assert.equal((await backend.find(spec.name, call))?.uid, made.uid);
      assert.equal(await world.boundTo(spec.name), spec.assignment.identity.spiffeId);
    },
  );

  test("delete() succeeds when there is nothing", async (_, backend) => {
    await backend.delete({ name: specOf("1", kind).name, uid: "any" }, call);
  });

  test("delete() may be called many times at once", async (_, backend) => {
    const made = await backend.create(specOf("1", kind), call);
    await Promise.all(Array.from({ length: 4 }, () => backend.delete(made, call)));
    await gone(backend, made.name);
    assert.deepEqual(await backend.list(call), []);
  });

  test(
    "watch() reports creation, end and deletion, and ends when aborted",
    async (world, backend) => {
      const controller = new AbortController();
      const seen: ExecutorChange[] = [];
      const watching = (async () => {
        for await (const change of backend.watch({ signal: controller.signal })) seen.push(change);
      })();
      const spec = specOf("1", kind);
      const of = (test: (change: ExecutorChange) => boolean, what: string) =>
        eventually(() => seen.some((change) => change.name === spec.name && test(change)), {
          what,
        });
      const made = await backend.create(spec, call);
      await of(({ executor }) => executor?.uid === made.uid, "the creation");
      await world.end(spec.name, { code: world.tellsEnd === "failure" ? 1 : 0, line: "done" });
      await of(({ executor }) => executor !== null && executor.ended !== null, "the end");
      await backend.delete(made, call);
      await of(({ executor }) => executor === null, "the deletion");
      controller.abort();
      await watching;
    },
  );

  test(
    "executors outlive the backend object: another one knows them all and can end them",
    async (world, backend) => {
      const specs = ["1", "2", "3"].map((task) => specOf(task, kind));
      const made = await Promise.all(specs.map((spec) => backend.create(spec, call)));
      const [first] = specs;
      assert.ok(first !== undefined);
      await world.end(first.name, { code: 7, line: "ended meanwhile" });
      const next = await world.reopen();
      const ended = await eventually(
        async () => (await next.find(first.name, call))?.ended ?? undefined,
        {
          what: "the end of the first",
        },
      );
      assert.equal(ended.exitCode, world.tellsEnd === "failure" ? null : 7);
      const all = await next.list(call);
      assert.deepEqual(
        all.map(({ name, uid }) => [name, uid]).sort(),
        made.map(({ name, uid }) => [name, uid]).sort(),
      );
      assert.deepEqual(
        all.map(({ metadata }) => metadata.labels[`${PREFIX}/task-id`]).sort(),
        ["1", "2", "3"],
      );
      await rejectsWith("conflict", next.create(first, call));
      for (const executor of all) await next.delete(executor, call);
      for (const spec of specs) await gone(backend, spec.name);
    },
  );
}

/** The code of a {@link BackendError}; undefined for anything else. */
function codeOf(error: unknown): string | undefined {
  return error instanceof BackendError ? error.code : undefined;
}
