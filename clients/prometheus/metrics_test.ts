import assert from "node:assert/strict";
import type { BackendView, Views } from "../../controller/views/views.ts";
import { createFakeClock, type FakeClock } from "../../lib/fake_clock.ts";
import { createFakeViews } from "../../tests/fakes/views.ts";
import { createMetrics, type Metrics } from "./metrics.ts";

interface Setup extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly metrics: Metrics;
  /** Value of one sample, as text; undefined when there is none. */
  sample(name: string): Promise<string | undefined>;
}

function setup(change: (views: Views) => Views = (views) => views): Setup {
  const clock = createFakeClock();
  const metrics = createMetrics({ views: change(createFakeViews({ clock })), clock });
  return {
    clock,
    metrics,
    async sample(name) {
      const line = (await metrics.text()).split("\n").find((one) => one.startsWith(`${name} `));
      return line?.slice(name.length + 1);
    },
    [Symbol.asyncDispose]: () => metrics[Symbol.asyncDispose](),
  };
}

const NAMES = [
  "gdr_leader",
  "gdr_fetch_total",
  "gdr_publish_total",
  "gdr_assignments",
  "gdr_slots",
  "gdr_transitions_total",
  "gdr_phase_seconds",
  "gdr_facade_requests_total",
  "gdr_facade_request_seconds",
  "gdr_executor_failures_total",
  "gdr_parked",
  "gdr_recovered",
  "gdr_svid_expiry_seconds",
  "gdr_watch_age_seconds",
  "gdr_slot_leaks_total",
  "gdr_webhook_deliveries_total",
  "gdr_event_loop_delay_seconds",
  "gdr_build_info",
];

Deno.test("createMetrics() exposes every metric of the contract under its name", async () => {
  await using world = setup();
  const text = await world.metrics.text();
  for (const name of NAMES) assert.match(text, new RegExp(`^# TYPE ${name} `, "m"), name);
  assert.match(world.metrics.contentType, /^text\/plain; version=0\.0\.4/);
});

Deno.test("createMetrics() counts what the recorder is told", async () => {
  await using world = setup();
  const { recorder } = world.metrics;
  recorder.fetched("task");
  recorder.fetched("task");
  recorder.published("stored");
  recorder.transition("pod", "received");
  recorder.phase("vm", "starting", 3);
  recorder.facadeRequest("UpdateLog", "ok", 0.004);
  recorder.executorFailed("pod", "image_pull");
  recorder.recovered("vm", 5);
  recorder.slotLeak();
  recorder.webhook("forged");
  for (
    const [name, value] of [
      [`gdr_fetch_total{result="task"}`, "2"],
      [`gdr_fetch_total{result="error"}`, "0"],
      [`gdr_publish_total{result="stored"}`, "1"],
      [`gdr_transitions_total{backend="pod",event="received"}`, "1"],
      [`gdr_phase_seconds_bucket{le="2.5",backend="vm",phase="starting"}`, "0"],
      [`gdr_phase_seconds_bucket{le="5",backend="vm",phase="starting"}`, "1"],
      [`gdr_facade_requests_total{method="UpdateLog",code="ok"}`, "1"],
      [`gdr_facade_request_seconds_count{method="UpdateLog"}`, "1"],
      [`gdr_executor_failures_total{backend="pod",reason="image_pull"}`, "1"],
      [`gdr_recovered{backend="vm"}`, "5"],
      [`gdr_recovered{backend="pod"}`, "0"],
      ["gdr_slot_leaks_total", "1"],
      [`gdr_webhook_deliveries_total{result="forged"}`, "1"],
    ] as const
  ) {
    assert.equal(await world.sample(name), value, name);
  }
});

Deno.test("createMetrics() reads the gauges from the views at each scrape", async () => {
  let leading = true;
  let used = 2;
  const change = (views: Views): Views => ({
    ...views,
    leader: () => ({ ...views.leader(), leading }),
    backends: () => views.backends().map((view): BackendView => ({ ...view, used, waiting: 7 })),
  });
  await using world = setup(change);
  assert.equal(await world.sample("gdr_leader"), "1");
  assert.equal(await world.sample(`gdr_slots{backend="pod",state="used"}`), "2");
  assert.equal(await world.sample(`gdr_assignments{backend="pod",state="stored"}`), "7");
  assert.match(await world.metrics.text(), /^gdr_build_info\{version="[^"]+",.*\} 1$/m);
  leading = false;
  used = 3;
  assert.equal(await world.sample("gdr_leader"), "0");
  assert.equal(await world.sample(`gdr_slots{backend="pod",state="used"}`), "3");
});

Deno.test("createMetrics() says NaN or nothing, never 0, for what the views cannot tell", async () => {
  const broken = (views: Views): Views => ({
    ...views,
    status: () => {
      throw new Error("not yet");
    },
  });
  await using world = setup(broken);
  assert.equal(await world.sample("gdr_leader"), "Nan");
  assert.equal(await world.sample(`gdr_slots{backend="pod",state="used"}`), undefined);
  assert.equal(await world.sample("gdr_svid_expiry_seconds"), "Nan");
  assert.equal(await world.sample(`gdr_fetch_total{result="task"}`), "0");
});

Deno.test("createMetrics() tells ages and times to go at the moment of the scrape", async () => {
  await using world = setup();
  const { recorder } = world.metrics;
  recorder.svidExpiry(world.clock.now() + 300_000);
  recorder.watchEvent("pod");
  await world.clock.advance(20_000);
  assert.equal(await world.sample("gdr_svid_expiry_seconds"), "280");
  assert.equal(await world.sample(`gdr_watch_age_seconds{source="pod"}`), "20");
});

Deno.test("createMetrics() shows the worst delay of the event loop since the last scrape", async () => {
  const clock = createFakeClock();
  let late = 0;
  const views = createFakeViews({ clock });
  const slow = { ...clock, monotonic: () => clock.monotonic() + late };
  await using metrics = createMetrics({ views, clock: slow });
  late = 1250;
  await clock.advance(500);
  assert.match(await metrics.text(), /^gdr_event_loop_delay_seconds 1\.25$/m);
  assert.match(await metrics.text(), /^gdr_event_loop_delay_seconds 0$/m);
});

Deno.test("createMetrics() does not let values from outside grow the labels without end", async () => {
  await using world = setup();
  const { recorder } = world.metrics;
  for (let n = 0; n < 500; n++) {
    recorder.facadeRequest(`Method${n}`, `code-${n}`, 0.1);
    recorder.watchEvent(`source-${n}`);
    recorder.phase("pod", `phase ${n}"}\nforged 1`, 1);
  }
  const text = await world.metrics.text();
  assert.ok(text.split("\n").length < 1500, String(text.split("\n").length));
  assert.doesNotMatch(text, /forged/);
  assert.match(text, /gdr_watch_age_seconds\{source="other"\}/);
});
