import assert from "node:assert/strict";
import type { Engine } from "../../controller/engine.ts";
import type { Span } from "../../controller/traces/span.ts";
import { createTraces, type Traces } from "../../controller/traces/traces.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createTaskGroup } from "../../lib/task_group.ts";
import { add } from "../fakes/gitea_port.ts";
import { createWorld, taskOf, type World } from "../support/engine_world.ts";
import { flawsOf } from "../support/whole_trace.ts";

/** The traces of all controllers of a world. */
function traced(world: World): { follow(engine: Engine): Traces; readonly spans: Span[] } {
  const spans: Span[] = [];
  const tasks = createTaskGroup(silentLogger);
  world.onEnd(() => tasks[Symbol.asyncDispose]());
  return {
    spans,
    follow(engine) {
      const traces = createTraces({
        registration: "uuid",
        sink: { record: (span) => void spans.push(span) },
        clock: world.clock,
        logger: silentLogger,
        tasks,
        history: (id) => Promise.resolve(world.journal.filter((e) => e.assignment === id)),
      });
      traces.follow(engine.ledger);
      return traces;
    },
  };
}

/** One tree, sent once, whose root says this of its end. */
function assertTrace(
  spans: readonly Span[],
  expected: { readonly names: readonly string[]; readonly result: string; readonly error: RegExp },
) {
  const plain = spans.map((span) => ({ ...span, parentSpanId: span.parentSpanId ?? "" }));
  assert.deepEqual(flawsOf(plain, expected.names), []);
  const root = spans.find(({ parentSpanId }) => parentSpanId === null);
  assert.equal(root?.attributes["cicd.pipeline.task.run.result"], expected.result);
  assert.match(root?.error ?? "none", expected.error);
  for (const { name, startedAt, endedAt } of spans) {
    assert.ok(startedAt >= (root?.startedAt ?? Infinity), `${name} begins before the root`);
    assert.ok(endedAt <= (root?.endedAt ?? 0), `${name} ends after the root`);
  }
}

Deno.test("engine's jobs that go well, are lost, or are cancelled are one trace each", async () => {
  for (
    const { fate, cancel, expected } of [
      { fate: "well", expected: { names: ["run"], result: "success", error: /^none$/ } },
      {
        fate: "dies_running",
        expected: { names: ["run"], result: "failure", error: /^executor_lost: .*137/ },
      },
      {
        fate: "never_claims",
        cancel: "backend_ready",
        expected: { names: ["start"], result: "cancellation", error: /^none$/ },
      },
      {
        fate: "ends_before_claim",
        cancel: "parked",
        expected: { names: ["create"], result: "cancellation", error: /^none$/ },
      },
    ] as const
  ) {
    await using world = await createWorld();
    world.plan = () => ({ fate });
    const { engine } = await world.start();
    const { follow, spans } = traced(world);
    follow(engine);
    await world.submit(1);
    if (cancel !== undefined) {
      await world.until(cancel, () => world.events(1).includes(cancel), 120_000);
      world.gitea.cancel(1n);
    }
    await world.cleaned(1, 400_000);
    assertTrace(spans, expected);
    const events = spans[0]?.events.map(({ name }) => name);
    assert.deepEqual(events, world.events(1), fate);
  }
});

Deno.test("engine's message that can never run is a trace with the reason", async () => {
  await using world = await createWorld();
  const { engine } = await world.start();
  const { follow, spans } = traced(world);
  follow(engine);
  world.gitea.tasks.set(1n, add());
  await world.publish(1, (await world.seal(taskOf(7))).data);
  await world.cleaned(1);
  assertTrace(spans, { names: ["queued"], result: "failure", error: /^invalid: .*is not$/ });
});

Deno.test("engine's job that two controllers had is one trace with the events of both", async () => {
  await using world = await createWorld();
  const { follow, spans } = traced(world);
  world.plan = () => ({ runMs: 20_000 });
  const first = await world.start();
  follow(first.engine);
  await world.submit(1);
  await world.until("the run", () => world.events(1).includes("running"));
  first.kill();
  assert.equal(spans.length, 0);
  const second = await world.start();
  follow(second.engine);
  await world.cleaned(1);
  await world.until("the trace", () => spans.length > 0);
  assertTrace(spans, { names: ["queued", "start", "run"], result: "success", error: /^none$/ });
  assert.deepEqual(spans[0]?.events.map(({ name }) => name), world.events(1));
});
