import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { createTaskGroup } from "../lib/task_group.ts";
import { createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { createWorld } from "../tests/support/engine_world.ts";
import { createLedgerWorld, infoOf } from "../tests/support/ledger_world.ts";
import { GiteaError } from "./gitea.ts";
import { createInquiry } from "./inquiry.ts";
import type { ExecutorName } from "./model/ids.ts";

Deno.test("consider() asks with all steps as they are: a state without steps would take them away", async () => {
  await using world = await createWorld({ capacity: 1 });
  world.plan = () => ({ runMs: 86_400_000 });
  await world.start();
  await world.submit(1);
  await world.until("running", () => world.events(1).includes("running"));
  const task = world.gitea.tasks.get(1n);
  const reported = task?.state;
  assert.equal(reported?.steps.length, 2);
  await world.until("the question", () => task?.state !== reported, 1_500_000);
  const steps = (state = task?.state) => state?.steps.map(({ id, result }) => ({ id, result }));
  assert.deepEqual(steps(), steps(reported));
  assert.equal(task?.state?.result, 0);
});

Deno.test("consider() asks about a thousand restored ones a few at a time", async () => {
  const clock = createFakeClock();
  await using tasks = createTaskGroup(silentLogger);
  const { ledger } = createLedgerWorld({ capacity: 1_000 });
  const answers: PromiseWithResolvers<never>[] = [];
  const inquiry = createInquiry({
    ...{ clock, tasks, ledger, logger: silentLogger, guard: () => {} },
    gitea: {
      ...createFakeGitea(),
      updateTask() {
        const answer = Promise.withResolvers<never>();
        answers.push(answer);
        return answer.promise;
      },
    },
    restoredMs: 60_000,
    zombieTimeoutMs: 600_000,
  });
  const entries = Array.from({ length: 1_000 }, (_, index) => {
    const executor = `ci-${index}` as ExecutorName;
    const entry = ledger.add(
      infoOf(index + 1),
      { kind: "running", executor, presence: "alive" },
      0,
    );
    entry.restored = true;
    return entry;
  });
  const look = () => {
    for (const entry of entries) inquiry.consider(entry);
  };
  look();
  await clock.advance(60_000);
  look();
  assert.equal(answers.length, 32);
  for (const { reject } of answers) reject(new Error("away"));
  await clock.advance(1_000);
  look();
  assert.equal(answers.length, 64);
  for (const { reject } of answers) reject(new Error("away"));
});

Deno.test("consider() asks as soon as it may when it was not sure to lead at first", async () => {
  const clock = createFakeClock();
  await using tasks = createTaskGroup(silentLogger);
  const { ledger } = createLedgerWorld();
  let sure = false;
  let asked = 0;
  const inquiry = createInquiry({
    ...{ clock, tasks, ledger, logger: silentLogger },
    guard() {
      if (!sure) throw new Error("not sure to lead");
    },
    gitea: {
      ...createFakeGitea(),
      updateTask() {
        asked++;
        return Promise.reject(new GiteaError("not_found", "Update task 1: not there"));
      },
    },
    restoredMs: 60_000,
    zombieTimeoutMs: 600_000,
  });
  const executor = "ci-1" as ExecutorName;
  const entry = ledger.add(infoOf(1), { kind: "running", executor, presence: "alive" }, 0);
  entry.restored = true;
  inquiry.consider(entry);
  await clock.advance(60_000);
  inquiry.consider(entry);
  await clock.advance(1_000);
  assert.equal(asked, 0);
  sure = true;
  inquiry.consider(entry);
  await clock.advance(1_000);
  assert.equal(asked, 1);
  assert.equal(entry.result, "cancelled");
});
