import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import {
  LogRowSchema,
  Result,
  StepStateSchema,
  type TaskState,
  TaskStateSchema,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../proto/runtime.ts";
import { createOutbox, type OutboxEnd } from "./outbox.ts";
import type { Sent } from "./report_sender.ts";
import { createRowSpool } from "./row_spool.ts";

type Weather = "fair" | "away" | "answer lost" | "refusing" | "sealed";

/** Bytes, roughly: enough to tell large from small. */
function sizeOf(...texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}

function setup() {
  const folder = Deno.makeTempDirSync();
  const clock = createFakeClock();
  const spool = createRowSpool({ file: `${folder}/rows`, memoryBytes: 400 });
  const facade = {
    weather: "fair" as Weather,
    /** Largest message that passes. */
    limit: Infinity,
    refuseStates: false,
    answer: Result.UNSPECIFIED as Result,
    rows: [] as string[],
    sealedAt: undefined as number | undefined,
    onSealed() {},
    states: [] as TaskState[],
    outputs: {} as Record<string, string>,
    log: [] as string[],
  };
  const weather = <T>(value: T): Sent<T> => {
    if (facade.weather === "away" || facade.weather === "answer lost") {
      return { kind: "later", why: "away" };
    }
    return { kind: "accepted", value };
  };
  const tooLarge = { kind: "too_large", why: "413" } as const;
  const refused = { kind: "refused", why: "not yours", sealed: false } as const;
  const outbox = createOutbox({
    taskId: 7n,
    spool,
    clock,
    random: () => 0.5,
    logger: silentLogger,
    runnerVersion: () => "v1.0.8",
    refusalMs: 60_000,
    sender: {
      updateLog(request) {
        if (facade.weather === "refusing") return Promise.resolve(refused);
        if (sizeOf(...request.rows.map((row) => row.content)) > facade.limit) {
          return Promise.resolve(tooLarge);
        }
        if (facade.weather === "sealed") return Promise.resolve({ ...refused, sealed: true });
        if (facade.weather !== "away" && Number(request.index) <= facade.rows.length) {
          const fresh = request.rows.slice(facade.rows.length - Number(request.index));
          facade.rows.push(...fresh.map((row) => row.content));
          if (request.noMore) {
            facade.sealedAt = facade.rows.length;
            facade.onSealed();
          }
          facade.log.push(`rows ${facade.rows.length}`);
        }
        const ackIndex = BigInt(facade.rows.length);
        return Promise.resolve(weather(create(UpdateLogResponseSchema, { ackIndex })));
      },
      updateTask(request) {
        if (facade.weather === "refusing") return Promise.resolve(refused);
        if (sizeOf(...Object.values(request.outputs)) > facade.limit) {
          return Promise.resolve(tooLarge);
        }
        if (facade.refuseStates) return Promise.resolve({ kind: "later", why: "away" } as const);
        if (facade.weather !== "away" && request.state !== undefined) {
          facade.states.push(request.state);
          Object.assign(facade.outputs, request.outputs);
          facade.log.push(`state ${request.state.result}`);
        }
        const state = { id: 7n, result: facade.answer };
        return Promise.resolve(weather(create(UpdateTaskResponseSchema, { state })));
      },
    },
  });
  const stop = new AbortController();
  let end: OutboxEnd | Error | undefined;
  const running = outbox.run(stop.signal).then((value) => end = value, (error) => end = error);
  let sent = 0;
  const log = (lines: readonly string[], noMore: boolean) => {
    const rows = lines.map((content) => create(LogRowSchema, { content }));
    const index = BigInt(sent);
    sent += rows.length;
    return outbox.log(create(UpdateLogRequestSchema, { taskId: 7n, index, rows, noMore }));
  };
  return {
    clock,
    facade,
    outbox,
    end: () => end,
    say: (...lines: string[]) => log(lines, false),
    /** What the runner says last. */
    sayLast: (...lines: string[]) => log(lines, true),
    state(result: Result, steps: Result[] = [], outputs: Record<string, string> = {}) {
      const state = create(TaskStateSchema, {
        id: 7n,
        result,
        steps: steps.map((step, id) => create(StepStateSchema, { id: BigInt(id), result: step })),
      });
      return outbox.state(create(UpdateTaskRequestSchema, { state, outputs }));
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("test over"));
      await clock.advance(10_000);
      await running;
      spool[Symbol.dispose]();
      Deno.removeSync(folder, { recursive: true });
    },
  };
}

Deno.test("createOutbox() answers at once and delivers a job that ended inside a 90 s outage", async () => {
  await using it = setup();
  assert.equal(it.say("first")?.ackIndex, 1n);
  await it.clock.advance(100);
  it.facade.weather = "away";
  for (let second = 0; second < 30; second++) {
    assert.equal(it.say(`tick ${second}`)?.ackIndex, BigInt(second + 2));
    assert.equal(it.state(Result.UNSPECIFIED, [Result.UNSPECIFIED]).state?.result, 0);
    await it.clock.advance(1000);
  }
  it.say("Job succeeded");
  assert.equal(it.state(Result.SUCCESS, [Result.SUCCESS]).state?.result, Result.SUCCESS);
  it.outbox.close();
  await it.clock.advance(60_000);
  assert.equal(it.end(), undefined);
  assert.deepEqual(it.facade.rows, ["first"]);
  it.facade.weather = "fair";
  await it.clock.advance(6000);
  const ticks = Array.from({ length: 30 }, (_, i) => `tick ${i}`);
  assert.deepEqual(it.facade.rows, ["first", ...ticks, "Job succeeded"]);
  assert.equal(it.facade.sealedAt, 32);
  assert.equal(it.facade.states.at(-1)?.result, Result.SUCCESS);
  assert.deepEqual(it.end(), { kind: "delivered", result: Result.SUCCESS });
});

Deno.test("createOutbox() keeps only the oldest and the newest of waiting states", async () => {
  await using it = setup();
  it.facade.weather = "away";
  for (let step = 1; step <= 20; step++) {
    it.state(Result.UNSPECIFIED, Array(step).fill(Result.SUCCESS));
    await it.clock.advance(500);
  }
  assert.ok(it.outbox.waiting.states <= 2);
  it.facade.weather = "fair";
  await it.clock.advance(6000);
  assert.deepEqual(it.facade.states.map((state) => state.steps.length), [1, 20]);
});

Deno.test("createOutbox() repeats what was done but not answered without doubling rows", async () => {
  await using it = setup();
  it.facade.weather = "answer lost";
  it.say("one", "two");
  await it.clock.advance(3000);
  it.say("three");
  await it.clock.advance(3000);
  it.facade.weather = "fair";
  it.state(Result.SUCCESS);
  await it.clock.advance(10_000);
  assert.deepEqual(it.facade.rows, ["one", "two", "three"]);
  assert.equal(it.facade.states.length, 1);
});

Deno.test("log() trims what overlaps and stores nothing behind a gap", async () => {
  await using it = setup();
  const send = (index: bigint, ...lines: string[]) => {
    const rows = lines.map((content) => create(LogRowSchema, { content }));
    const request = create(UpdateLogRequestSchema, { taskId: 7n, index, rows });
    return it.outbox.log(request)?.ackIndex;
  };
  assert.equal(send(0n, "a", "b"), 2n);
  assert.equal(send(1n, "b", "c"), 3n);
  assert.equal(send(9n, "z"), 3n);
  await it.clock.advance(100);
  assert.deepEqual(it.facade.rows, ["a", "b", "c"]);
});

Deno.test("state() passes a cancel on as soon as the facade has told it", async () => {
  await using it = setup();
  it.facade.answer = Result.CANCELLED;
  assert.equal(it.state(Result.UNSPECIFIED).state?.result, Result.UNSPECIFIED);
  await it.clock.advance(10);
  assert.equal(it.state(Result.UNSPECIFIED).state?.result, Result.CANCELLED);
});

Deno.test("state() tells the runner CANCELLED for any end that Gitea knows", async () => {
  await using it = setup();
  it.facade.answer = Result.FAILURE;
  it.state(Result.UNSPECIFIED);
  await it.clock.advance(10);
  assert.equal(it.state(Result.UNSPECIFIED).state?.result, Result.CANCELLED);
});

Deno.test("state() forwards one of the states that say nothing new in 3 s", async () => {
  await using it = setup();
  for (let i = 0; i < 10; i++) {
    it.state(Result.UNSPECIFIED, [Result.SUCCESS]);
    await it.clock.advance(1000);
  }
  assert.equal(it.facade.states.length, 4);
});

Deno.test("createOutbox() seals the log only together with the final state", async () => {
  await using it = setup();
  const request = { taskId: 7n, index: 0n, rows: [{ content: "last" }], noMore: true };
  it.outbox.log(create(UpdateLogRequestSchema, request));
  await it.clock.advance(1000);
  assert.deepEqual(it.facade.rows, ["last"]);
  assert.equal(it.facade.sealedAt, undefined);
  it.state(Result.FAILURE);
  await it.clock.advance(1000);
  assert.equal(it.facade.sealedAt, 1);
  assert.deepEqual(it.facade.log, ["rows 1", "rows 1", "state 2"]);
});

Deno.test("createOutbox() sends the runner's last row together with the seal", async () => {
  await using it = setup();
  it.say("first");
  await it.clock.advance(100);
  it.sayLast("second", "last");
  await it.clock.advance(100);
  assert.deepEqual(it.facade.rows, ["first", "second"]);
  it.state(Result.FAILURE);
  await it.clock.advance(100);
  assert.deepEqual(it.facade.rows, ["first", "second", "last"]);
  assert.deepEqual(it.facade.log, ["rows 1", "rows 2", "rows 3", "state 2"]);
  assert.equal(it.facade.sealedAt, 3);
});

Deno.test("createOutbox() sends the last row again with each try at the end: another facade may not have it", async () => {
  await using it = setup();
  it.sayLast("first", "last");
  it.facade.refuseStates = true;
  it.state(Result.FAILURE);
  await it.clock.advance(100);
  assert.deepEqual(it.facade.rows, ["first", "last"]);
  // The facade that held the row back is gone before Gitea had it.
  it.facade.rows.pop();
  it.facade.sealedAt = undefined;
  it.facade.refuseStates = false;
  await it.clock.advance(6000);
  assert.deepEqual(it.facade.rows, ["first", "last"]);
  assert.equal(it.facade.sealedAt, 2);
  assert.deepEqual(it.end(), { kind: "delivered", result: Result.FAILURE });
  assert.deepEqual(it.outbox.waiting.rows, 0);
});

Deno.test("createOutbox() sends the last row again when a state before the end meets another facade", async () => {
  await using it = setup();
  it.facade.weather = "away";
  it.state(Result.UNSPECIFIED);
  it.say("first");
  it.state(Result.UNSPECIFIED, [Result.SUCCESS]);
  it.sayLast("last");
  it.state(Result.FAILURE);
  it.facade.weather = "fair";
  // Its rows arrive, sealed, and then the facade that held the last one back is gone.
  it.facade.onSealed = () => {
    it.facade.onSealed = () => {};
    it.facade.refuseStates = true;
  };
  await it.clock.advance(200);
  assert.deepEqual(it.facade.log, ["state 0", "rows 2"]);
  it.facade.rows.pop();
  it.facade.sealedAt = undefined;
  it.facade.refuseStates = false;
  await it.clock.advance(6000);
  assert.deepEqual(it.facade.rows, ["first", "last"]);
  assert.deepEqual(it.end(), { kind: "delivered", result: Result.FAILURE });
});

Deno.test("createOutbox() cuts what is too large in one piece, and never repeats it as it was", async () => {
  await using it = setup();
  it.facade.limit = 100;
  const lines = Array.from({ length: 20 }, (_, i) => `${i} `.padEnd(30, "x"));
  it.say(...lines, "y".repeat(101), "end");
  await it.clock.advance(100);
  assert.deepEqual(it.facade.rows, [
    ...lines,
    "(a row of 101 characters is left out: Gitea, or a proxy in front of it, does not take it)",
    "end",
  ]);
});

Deno.test("log() keeps of a row what Gitea keeps of it", async () => {
  await using it = setup();
  it.say("z".repeat(3_000_000));
  await it.clock.advance(100);
  assert.deepEqual(it.facade.rows.map((row) => row.length), [64 * 1024]);
});

Deno.test("an output that is too large by itself fails the job and says so in its log", async () => {
  for (const result of [Result.SUCCESS, Result.CANCELLED]) {
    await using it = setup();
    it.facade.limit = 900_000;
    it.sayLast("Job succeeded");
    it.state(result, [], { a: "x".repeat(500_000), b: "y".repeat(500_000), big: "z".repeat(1e6) });
    await it.clock.advance(100);
    assert.deepEqual(Object.keys(it.facade.outputs), ["a", "b"]);
    assert.equal(it.facade.rows.length, 2);
    assert.match(it.facade.rows.at(-1) ?? "", /^Error: the output "big" .* its 1000003 bytes\./);
    const reported = result === Result.SUCCESS ? Result.FAILURE : result;
    assert.deepEqual(it.end(), { kind: "delivered", result: reported });
    assert.equal(it.facade.sealedAt, 2);
  }
});

Deno.test("createOutbox() reports failure with a reason for an interrupted job's success", async () => {
  await using it = setup();
  it.outbox.terminating("the node is shut down");
  it.say("Job succeeded", "context canceled", "");
  it.state(Result.SUCCESS, [Result.FAILURE, Result.CANCELLED]);
  await it.clock.advance(1000);
  assert.equal(it.facade.states.at(-1)?.result, Result.FAILURE);
  assert.match(it.facade.rows.at(-1) ?? "", /interrupted.*the node is shut down/);
  assert.equal(it.facade.sealedAt, it.facade.rows.length);
});

Deno.test("createOutbox() sends every output once, and large ones in parts before the end", async () => {
  await using it = setup();
  const big = "x".repeat(400_000);
  it.state(Result.SUCCESS, [], { a: big, b: big, c: "small" });
  await it.clock.advance(1000);
  assert.deepEqual(Object.keys(it.facade.outputs).sort(), ["a", "b", "c"]);
  assert.deepEqual(it.facade.states.map((state) => state.result), [
    Result.UNSPECIFIED,
    Result.SUCCESS,
  ]);
  assert.equal(it.end() instanceof Error, false);
});

Deno.test("state() lists all output keys it holds, and the first value of a key stays", async () => {
  await using it = setup();
  it.state(Result.UNSPECIFIED, [], { a: "1" });
  const answer = it.state(Result.SUCCESS, [], { a: "2", b: "3" });
  assert.deepEqual(answer.sentOutputs, ["a", "b"]);
  await it.clock.advance(1000);
  assert.deepEqual(it.facade.outputs, { a: "1", b: "3" });
});

Deno.test("run() gives up only when the facade has refused for a minute", async () => {
  await using it = setup();
  it.facade.weather = "refusing";
  it.say("row");
  await it.clock.advance(50_000);
  assert.equal(it.end(), undefined);
  it.facade.weather = "fair";
  await it.clock.advance(5000);
  assert.deepEqual(it.facade.rows, ["row"]);
  it.facade.weather = "refusing";
  it.say("another");
  await it.clock.advance(70_000);
  assert.deepEqual(it.end(), { kind: "refused", why: "not yours" });
  assert.equal(it.state(Result.UNSPECIFIED).state?.result, Result.CANCELLED);
});

Deno.test("run() delivers the state although Gitea has sealed the log already", async () => {
  await using it = setup();
  it.say("row");
  await it.clock.advance(100);
  it.facade.weather = "sealed";
  it.say("too late");
  it.state(Result.FAILURE);
  await it.clock.advance(1000);
  assert.deepEqual(it.end(), { kind: "delivered", result: Result.FAILURE });
});

Deno.test("run() ends drained when the runner went without a final state", async () => {
  await using it = setup();
  it.say("row");
  it.outbox.close();
  await it.clock.advance(1000);
  assert.deepEqual(it.end(), { kind: "drained" });
  assert.equal(it.facade.sealedAt, undefined);
});

Deno.test("run() rejects with the signal's reason", async () => {
  const it = setup();
  it.facade.weather = "away";
  it.say("row");
  await it.clock.advance(100);
  await it[Symbol.asyncDispose]();
  assert.equal((it.end() as Error).message, "test over");
});
