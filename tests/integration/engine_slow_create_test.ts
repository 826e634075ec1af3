import assert from "node:assert/strict";
import type { Backend } from "../../controller/backend.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { createWorld } from "../support/engine_world.ts";

const FULL = {
  code: "quota",
  detail: "POOL_CAPACITY_EXHAUSTED: no available pod in pool",
} as const;

Deno.test("engine says within seconds what a microVM waits for whose create takes a minute", async () => {
  await using world = await createWorld({ backends: ["vm"] });
  const { vm } = world;
  const answered = Promise.withResolvers<void>();
  const create = vm.create.bind(vm);
  Object.assign(
    vm,
    {
      async create(spec, call) {
        const made = await create(spec, call);
        // It is listed while its create waits.
        vm.put({ ...made, identityTarget: null, waiting: FULL, phase: "Pending" });
        await answered.promise;
        vm.put(made);
        return made;
      },
    } satisfies Pick<Backend, "create">,
  );
  const { engine } = await world.start();
  const reason = () => engine.ledger.get(world.id(1))?.reason;
  await world.submit(1, { backend: "vm" });
  await world.until("the reason", () => reason()?.detail === FULL.detail, 10_000);
  assert.equal(reason()?.code, "quota");
  answered.resolve();
  await world.cleaned(1, 120_000);
  assert.equal(world.gitea.tasks.get(1n)?.result, Result.SUCCESS);
  world.assertClean();
});
