import assert from "node:assert/strict";
import { untilAborted } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import {
  Result,
  TaskStateSchema,
  UpdateTaskResponseSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../proto/runtime.ts";
import { createMasks } from "./masks.ts";
import { createReporter } from "./reporter.ts";
import type { Rpc } from "./rpc.ts";

/** A server that takes no row; `updateLog` says how. */
function setup(updateLog: Rpc["updateLog"]) {
  const clock = createFakeClock();
  const stop = new AbortController();
  const server = { result: Result.UNSPECIFIED, states: 0 };
  const reporter = createReporter({
    clock,
    masks: createMasks([]),
    taskId: 1n,
    steps: 1,
    rpc: {
      updateLog,
      updateTask() {
        server.states++;
        const state = create(TaskStateSchema, { id: 1n, result: server.result });
        return Promise.resolve(create(UpdateTaskResponseSchema, { state }));
      },
      declare: () => Promise.resolve(),
      fetchTask: () => Promise.reject(new Error("not used")),
    },
  });
  const running = reporter.run(stop.signal);
  return {
    clock,
    server,
    reporter,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await clock.advance(0);
      await running;
    },
  };
}

const refuses = () => Promise.reject(new Error("log file has been archived"));

Deno.test("run() hears that the job has ended although no row is taken any more", async () => {
  await using t = setup(refuses);
  await t.reporter.log("a row");
  t.server.result = Result.CANCELLED;
  await t.clock.advance(3_000);
  assert.ok(t.reporter.cancelled.aborted);
});

Deno.test("run() gives up a call that is not answered", async () => {
  await using t = setup((_, { signal }) => untilAborted(signal));
  await t.reporter.log("a row");
  t.server.result = Result.CANCELLED;
  await t.clock.advance(11_000);
  assert.ok(t.reporter.cancelled.aborted);
});

Deno.test("log() waits for room while the job runs, and no longer than 5 s after its end", async () => {
  await using t = setup(refuses);
  const end = new AbortController();
  t.reporter.endWith(end.signal);
  await t.reporter.log(...Array.from({ length: 5_001 }, () => "a row"));
  let logged = false;
  const logging = t.reporter.log("one more").then(() => logged = true);
  await t.clock.advance(10_000);
  assert.ok(!logged);
  end.abort();
  await t.clock.advance(6_000);
  assert.ok(logged);
  await logging;
  await t.reporter.log("and more");
});
