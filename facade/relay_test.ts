import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import {
  LogRowSchema,
  Result,
  StepStateSchema,
  TaskStateSchema,
  UpdateLogRequestSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { GiteaError } from "../controller/gitea.ts";
import { add, createFakeGitea } from "../tests/fakes/gitea_port.ts";
import { createRecordedEvents, sampleInfo } from "../tests/support/facade_setup.ts";
import { fc } from "../tests/support/property.ts";
import { createRelay } from "./relay.ts";

const ID = 11n;
const signal = new AbortController().signal;

function setup(offset = 0) {
  const gitea = createFakeGitea();
  const task = add();
  task.rows.push(...Array.from({ length: offset }, (_, i) => `waiting ${i}`));
  gitea.tasks.set(ID, task);
  const events = createRecordedEvents();
  const clock = createFakeClock();
  const relay = createRelay({ gitea, events, clock, logger: silentLogger }, sampleInfo(ID), offset);
  const log = (index: number, contents: readonly string[], noMore = false) =>
    relay.updateLog(
      create(UpdateLogRequestSchema, {
        taskId: ID,
        index: BigInt(index),
        rows: contents.map((content) => create(LogRowSchema, { content })),
        noMore,
      }),
      signal,
    );
  const state = (
    result = Result.UNSPECIFIED,
    steps: [number, number][] = [],
    outputs: Record<string, string> = {},
  ) =>
    relay.updateTask({
      state: create(TaskStateSchema, {
        id: ID,
        result,
        steps: steps.map(([at, length], i) =>
          create(StepStateSchema, {
            id: BigInt(i),
            logIndex: BigInt(at),
            logLength: BigInt(length),
          })
        ),
      }),
      outputs,
    }, signal);
  return { gitea, task, events, clock, relay, log, state };
}

Deno.test("updateLog() shifts rows by the offset for any batches, repeats and gaps", async () => {
  const batch = fc.record({ start: fc.nat(30), length: fc.nat(10) });
  await fc.assert(
    fc.asyncProperty(fc.nat(5), fc.array(batch, { maxLength: 12 }), async (offset, batches) => {
      const { task, log } = setup(offset);
      let have = 0;
      for (const { start, length } of batches) {
        const contents = Array.from({ length }, (_, i) => `row ${start + i}`);
        const { ackIndex } = await log(start, contents);
        if (start <= have) have = Math.max(have, start + length);
        assert.equal(ackIndex, BigInt(have), "the runner counts its own rows only");
      }
      const expected = [
        ...Array.from({ length: offset }, (_, i) => `waiting ${i}`),
        ...Array.from({ length: have }, (_, i) => `row ${i}`),
      ];
      assert.deepEqual(task.rows, expected);
    }),
  );
});

Deno.test("updateTask() shifts the steps' log index and leaves the caller's message alone", async () => {
  const { task, state, events } = setup(3);
  await state(Result.UNSPECIFIED, [[0, 4], [4, 2]]);
  assert.deepEqual(task.state?.steps.map((s) => [s.logIndex, s.logLength]), [[3n, 4n], [7n, 2n]]);
  assert.ok(events.told.includes("steps gitea-task-11 3+4,7+2"));
});

Deno.test("updateTask() forwards an unchanged state at most each 10 s, a changed one at once", async () => {
  const { task, state, clock } = setup();
  await state();
  await state();
  await clock.advance(9_999);
  await state();
  assert.equal(task.heartbeats, 1);
  await clock.advance(1);
  await state();
  assert.equal(task.heartbeats, 2);
  await state(Result.UNSPECIFIED, [[0, 1]]);
  assert.equal(task.heartbeats, 3);
});

Deno.test("updateTask() tells the runner CANCELLED whatever end Gitea knows", async () => {
  for (const result of [Result.CANCELLED, Result.FAILURE, Result.SKIPPED]) {
    const { task, state } = setup();
    task.result = result;
    assert.equal((await state()).state?.result, Result.CANCELLED);
  }
});

Deno.test("no_more is held back until the final state, then the log is sealed before it", async () => {
  const { gitea, task, log, state, events, relay } = setup(1);
  assert.equal((await log(0, ["a", "Job succeeded"], true)).ackIndex, 2n);
  assert.equal(task.sealed, false);
  let sealedFirst = false;
  const updateTask = gitea.updateTask;
  gitea.updateTask = (update, call) => {
    sealedFirst = task.sealed;
    return updateTask(update, call);
  };
  await state(Result.SUCCESS);
  assert.ok(sealedFirst);
  assert.equal(task.result, Result.SUCCESS);
  assert.equal(relay.outcome, "success");
  assert.deepEqual(task.rows, ["waiting 0", "a", "Job succeeded"]);
  assert.equal(events.told.at(-1), "final gitea-task-11 success");
});

Deno.test("rows that come after the final state are taken until the runner seals the log", async () => {
  const { task, log, state, relay } = setup();
  await state(Result.FAILURE);
  assert.equal(task.sealed, false);
  await log(0, ["late"]);
  await log(1, ["last"], true);
  assert.deepEqual(task.rows, ["late", "last"]);
  assert.ok(task.sealed);
  assert.equal((await log(2, ["too late"])).ackIndex, 3n, "it is not repeated for ever");
  await relay.seal(signal);
});

Deno.test("seal() seals a log that nobody sealed, once the outcome is settled", async () => {
  const { task, log, state, relay } = setup();
  await log(0, ["a"]);
  await relay.seal(signal);
  assert.equal(task.sealed, false);
  await state(Result.SUCCESS);
  await relay.seal(signal);
  assert.ok(task.sealed);
});

Deno.test("the seal brings the row that came with no_more, or an empty one: Gitea seals by nothing less", async () => {
  for (const batches of [[["a"], ["b", "end"]], [["a", "b"], ["end"]], [["a", "b", "end"], []]]) {
    for (const answered of [true, false]) {
      const { task, log, state } = setup(2);
      let index = 0;
      for (const [i, rows] of batches.entries()) {
        const noMore = i === batches.length - 1;
        // An answer that was lost: the gate sends the same again.
        if (!answered) await log(index, rows, noMore);
        index += rows.length;
        assert.equal((await log(index - rows.length, rows, noMore)).ackIndex, BigInt(index));
      }
      assert.equal(task.sealed, false);
      await state(Result.SUCCESS);
      assert.ok(task.sealed, JSON.stringify(batches));
      const empty = batches.at(-1)?.length === 0 ? [""] : [];
      assert.deepEqual(task.rows, ["waiting 0", "waiting 1", "a", "b", "end", ...empty]);
    }
  }
});

Deno.test("whatever batches and no_more come, every row is at Gitea once and in order when the log is sealed", async () => {
  const batch = fc.record({ start: fc.nat(12), length: fc.nat(4), noMore: fc.boolean() });
  const batches = fc.array(batch, { maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(fc.nat(3), batches, batches, async (offset, before, after) => {
      const { task, log, state, relay } = setup(offset);
      let have = 0;
      const send = async ({ start, length, noMore }: (typeof before)[number]) => {
        const rows = Array.from({ length }, (_, i) => `row ${start + i}`);
        const { ackIndex } = await log(start, rows, noMore);
        if (task.sealed) return;
        if (start <= have) have = Math.max(have, start + length);
        assert.equal(ackIndex, BigInt(have));
      };
      for (const one of before) await send(one);
      assert.equal(task.sealed, false);
      await state(Result.SUCCESS);
      const sealed = task.sealed;
      if (!sealed) { for (const one of after) await send(one); }
      await relay.seal(signal);
      assert.ok(task.sealed);
      const own = task.rows.slice(offset);
      if (own.at(-1) === "") own.pop();
      assert.deepEqual(own.slice(0, have), Array.from({ length: have }, (_, i) => `row ${i}`));
      assert.ok(own.length <= have + 4 && own.every((row, i) => row === `row ${i}`));
    }),
  );
});

Deno.test("rows after no_more are not lost, and do not come before the row that was kept", async () => {
  const { task, log, state } = setup();
  await log(0, ["a", "b"], true);
  assert.equal((await log(5, ["gap"])).ackIndex, 2n);
  assert.equal((await log(2, ["c"], true)).ackIndex, 3n);
  await state(Result.FAILURE);
  assert.deepEqual(task.rows, ["a", "b", "c"]);
  assert.ok(task.sealed);
});

Deno.test("a row that another controller had kept is sealed by this one when the gate repeats it", async () => {
  const { task, log, state } = setup();
  task.rows.push("a");
  assert.equal((await log(1, ["Job succeeded"], true)).ackIndex, 2n);
  await state(Result.SUCCESS);
  assert.deepEqual(task.rows, ["a", "Job succeeded"]);
  assert.ok(task.sealed);
});

Deno.test("a final state that comes to another controller without the log's end waits for it, once", async () => {
  const { task, log, state, relay } = setup();
  task.rows.push("a");
  relay.restored();
  await assert.rejects(state(Result.SUCCESS), GiteaError);
  assert.equal(task.result, Result.UNSPECIFIED);
  assert.equal((await log(1, ["Job succeeded"], true)).ackIndex, 2n);
  await state(Result.SUCCESS);
  assert.deepEqual(task.rows, ["a", "Job succeeded"]);
  assert.ok(task.sealed);

  const silent = setup();
  silent.relay.restored();
  await assert.rejects(silent.state(Result.SUCCESS), GiteaError);
  await silent.state(Result.SUCCESS);
  assert.equal(silent.task.result, Result.SUCCESS);
});

Deno.test("the end is recorded as it is judged, after the outputs and before the log is sealed", async () => {
  const { gitea, task, log, state, events, relay } = setup(2);
  const order: string[] = [];
  const { updateTask } = gitea;
  gitea.updateTask = (update, call) => {
    order.push(`${Result[update.state.result]} ${Object.keys(update.outputs ?? {})}`);
    return updateTask(update, call);
  };
  let away = true;
  events.endReported = (_id, { result, steps, row }) => {
    const at = steps.map(({ logIndex }) => logIndex);
    order.push(`recorded ${result} ${at} ${row?.includes("evicted")}, sealed ${task.sealed}`);
    return away ? Promise.reject(new Error("not any more")) : Promise.resolve();
  };
  relay.terminating("evicted");
  await log(0, ["step", "context canceled"], true);
  await assert.rejects(state(Result.SUCCESS, [[0, 2]], { key: "value" }), /not any more/);
  assert.equal(task.sealed, false, "nothing is sealed by one that may not act any more");
  away = false;
  order.length = 0;
  await state(Result.SUCCESS, [[0, 2]], { key: "value" });
  assert.deepEqual(order, [
    "UNSPECIFIED key",
    "recorded failure 2 true, sealed false",
    "FAILURE key",
  ]);
  assert.equal(task.result, Result.FAILURE);
});

Deno.test("the end is recorded once, however often Gitea does not take it", async () => {
  const { gitea, log, state, events } = setup();
  let recorded = 0;
  events.endReported = () => Promise.resolve(void recorded++);
  const { updateTask } = gitea;
  gitea.updateTask = () => Promise.reject(new GiteaError("unavailable", "Update the task: away"));
  await log(0, ["Job succeeded"], true);
  for (let tries = 0; tries < 3; tries++) await assert.rejects(state(Result.SUCCESS), GiteaError);
  gitea.updateTask = updateTask;
  await state(Result.SUCCESS);
  assert.equal(recorded, 1);
});

Deno.test("a success of an interrupted job becomes failure, with the reason in the log before the seal", async () => {
  for (const told of [true, false]) {
    const { task, log, state, relay, events } = setup(2);
    await log(0, ["step", "Job succeeded", "context canceled", ""], true);
    if (told) relay.terminating("evicted");
    await state(Result.SUCCESS);
    assert.equal(task.result, Result.FAILURE);
    const why = told ? "evicted" : "its runner was told to stop";
    assert.ok(task.rows.at(-1)?.includes(`interrupted: ${why}.`), task.rows.join("\n"));
    assert.ok(task.sealed);
    assert.equal(events.told.at(-1), "final gitea-task-11 failure");
  }
});

Deno.test("whoever deleted the executor stands in the log of a job that did not succeed", async () => {
  const why = "the executor was deleted by somebody other than the controller";
  const failed = setup();
  failed.events.whyDeleted = () => why;
  await failed.log(0, ["Error: this job was interrupted: got SIGTERM"], true);
  await failed.state(Result.FAILURE);
  assert.equal(failed.task.rows.at(-1), `gitea-dynamic-runner: ${why}`);
  assert.equal(failed.task.result, Result.FAILURE);

  const stopped = setup();
  stopped.events.whyDeleted = () => why;
  stopped.relay.terminating("got SIGTERM");
  await stopped.log(0, ["context canceled"], true);
  await stopped.state(Result.SUCCESS);
  assert.ok(stopped.task.rows.at(-1)?.includes(`interrupted: ${why}.`));
  assert.equal(stopped.task.result, Result.FAILURE);

  const succeeded = setup();
  succeeded.events.whyDeleted = () => why;
  await succeeded.log(0, ["Job succeeded"], true);
  await succeeded.state(Result.SUCCESS);
  assert.equal(succeeded.task.rows.at(-1), "Job succeeded");
  assert.equal(succeeded.task.result, Result.SUCCESS);
});

Deno.test("a success of a cancelled job is reported as cancelled", async () => {
  const { task, log, state } = setup();
  task.result = Result.CANCELLED;
  await state();
  await log(0, ["context canceled"], true);
  await state(Result.SUCCESS);
  assert.equal(task.state?.result, Result.CANCELLED);
  assert.equal(task.rows.at(-1), "context canceled");
});

Deno.test("a final state that Gitea did not take is tried again without a second reason row", async () => {
  const { gitea, task, log, state, relay, events } = setup();
  await log(0, ["context canceled"], true);
  const updateTask = gitea.updateTask;
  gitea.updateTask = () => Promise.reject(new GiteaError("unavailable", "Call Gitea: no"));
  await assert.rejects(state(Result.SUCCESS), GiteaError);
  assert.equal(relay.outcome, null);
  gitea.updateTask = updateTask;
  await state(Result.SUCCESS);
  await state(Result.SUCCESS);
  assert.equal(task.rows.length, 2);
  assert.equal(task.result, Result.FAILURE);
  assert.equal(events.told.filter((t) => t.startsWith("final")).length, 1);
});

Deno.test("a task that Gitea does not know for good counts as ended, and its reports end here", async () => {
  const { gitea, log, state, relay, events } = setup();
  gitea.tasks.delete(ID);
  assert.equal((await state()).state?.result, Result.CANCELLED);
  assert.equal(relay.outcome, "cancelled");
  assert.equal((await log(0, ["a", "b"])).ackIndex, 2n);
  assert.equal((await state(Result.SUCCESS)).state?.result, Result.CANCELLED);
  assert.equal(events.told.filter((t) => t.startsWith("final")).length, 1);
});

Deno.test("reports reach Gitea one at a time and in order", async () => {
  const { gitea, task, log, state } = setup();
  const updateLog = gitea.updateLog;
  let inside = 0;
  gitea.updateLog = async (update, call) => {
    assert.equal(++inside, 1);
    await new Promise((resolve) => setTimeout(resolve, 0));
    inside--;
    return await updateLog(update, call);
  };
  await Promise.all([log(0, ["a"]), log(1, ["b"]), log(2, ["c"], true), state(Result.SUCCESS)]);
  assert.deepEqual(task.rows, ["a", "b", "c"]);
  assert.ok(task.sealed);
});

Deno.test("cancel() answers every report with the end, and the log says who wanted it", async () => {
  const { relay, state, log, task } = setup(2);
  await log(0, ["one"]);
  assert.equal((await state()).state?.result ?? Result.UNSPECIFIED, Result.UNSPECIFIED);
  relay.cancel("cancelled by alice: it hangs");
  // The same state again is answered from memory.
  assert.equal((await state()).state?.result, Result.CANCELLED);
  assert.equal((await state(Result.UNSPECIFIED, [[0, 1]])).state?.result, Result.CANCELLED);
  assert.equal(task.result, Result.UNSPECIFIED);
  // The official runner calls it a success.
  await log(1, ["context canceled"], true);
  await state(Result.SUCCESS);
  assert.equal(task.result, Result.CANCELLED);
  assert.equal(task.rows.at(-1), "gitea-dynamic-runner: cancelled by alice: it hangs");
});

Deno.test("cancel() that comes too late changes nothing of a job that came to its end", async () => {
  const { relay, state, log, task } = setup();
  await log(0, ["Job succeeded"], true);
  relay.cancel("cancelled by alice");
  await state(Result.SUCCESS);
  assert.equal(task.result, Result.SUCCESS);
  assert.deepEqual(task.rows, ["Job succeeded"]);
});
