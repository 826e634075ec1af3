import assert from "node:assert/strict";
import { untilAborted } from "../../lib/abortable.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { createFakeBackend } from "../../tests/fakes/backend.ts";
import { createFakeGitea } from "../../tests/fakes/gitea_port.ts";
import { createFakeQueue } from "../../tests/fakes/queue.ts";
import { createFakeStore } from "../../tests/fakes/records.ts";
import { guardPorts } from "./guarded.ts";
import { parseAssignmentId } from "../model/ids.ts";
import type { Demand, StoredMessage } from "../queue.ts";

const call = { signal: new AbortController().signal };

/** Ports of a leader that loses the lead when `state.leads` turns false. */
function setup() {
  const clock = createFakeClock();
  const queue = createFakeQueue({ clock });
  const backend = createFakeBackend({ clock });
  const store = createFakeStore();
  const state = { leads: true };
  const guard = () => {
    if (!state.leads) throw new Error("does not lead");
  };
  const ports = guardPorts({
    gitea: createFakeGitea(),
    queue,
    records: store.records(),
    control: store.control,
    backends: [backend],
  }, { clock, guard, publish: (message, options) => queue.publish(message, options) });
  return { clock, queue, backend, state, ports };
}

function message() {
  const id = parseAssignmentId("gitea-task-1");
  assert.ok(id !== undefined);
  return { id, backend: "pod" as const, data: new Uint8Array([1]), headers: {} };
}

Deno.test("guardPorts() lets no effect through once this process does not lead", async () => {
  const { backend, state, ports } = setup();
  const [guarded] = ports.backends;
  assert.ok(guarded !== undefined);
  state.leads = false;
  const nobody = { name: "x", uid: "u" } as Parameters<typeof guarded.delete>[0];
  for (
    const effect of [
      () => ports.gitea.fetchTask(0n, call),
      () => ports.gitea.declare({ version: "1", labels: [], capabilities: [] }, call),
      () => ports.control.takeOver(call),
      () => ports.queue.resetConsumer("pod", call),
      () => ports.queue.remove(1, call),
      () => guarded.delete(nobody, call),
      () => guarded.markTerminal(nobody, call),
    ]
  ) await assert.rejects(effect(), /does not lead/);
  assert.deepEqual(backend.calls, []);
  assert.deepEqual(await guarded.list(call), [], "reads pass");
});

Deno.test("guardPorts() stores what was fetched, whoever leads", async () => {
  const { state, ports } = setup();
  state.leads = false;
  assert.equal((await ports.queue.publish(message(), call)).duplicate, false);
});

Deno.test("guardPorts() takes no message and gives none back while it is not sure, and goes on after", async () => {
  const { clock, state, ports } = setup();
  const stop = new AbortController();
  const taken: StoredMessage[] = [];
  const demand: Demand = {
    free: () => 1 - taken.length,
    changed: untilAborted,
  };
  state.leads = false;
  const consuming = (async () => {
    for await (const each of ports.queue.consume("pod", demand, stop)) taken.push(each);
  })();
  await ports.queue.publish(message(), call);
  await clock.advance(5_000);
  assert.equal(taken.length, 0);
  state.leads = true;
  await clock.advance(2_000);
  assert.equal(taken.length, 1);
  state.leads = false;
  const [first] = taken;
  assert.ok(first !== undefined);
  await assert.rejects(first.ack(call), /does not lead/);
  first.nak(0);
  await clock.advance(2_000);
  state.leads = true;
  await first.ack(call);
  stop.abort();
  await consuming.catch(() => {});
});

Deno.test("guardPorts() wakes a consumer that was told of no room while it was not sure for a moment", async () => {
  const clock = createFakeClock();
  const queue = createFakeQueue({ clock });
  const store = createFakeStore();
  const state = { leads: true };
  const demands: Demand[] = [];
  const { queue: guarded } = guardPorts({
    gitea: createFakeGitea(),
    queue: {
      ...queue,
      // deno-lint-ignore require-yield
      async *consume(_, demand, { signal }) {
        demands.push(demand);
        await untilAborted(signal);
      },
    },
    records: store.records(),
    control: store.control,
    backends: [],
  }, {
    clock,
    guard() {
      if (!state.leads) throw new Error("does not lead");
    },
    publish: queue.publish,
  });
  const stop = new AbortController();
  // Nothing of the room itself changes: nobody works.
  const idle: Demand = { free: () => 4, changed: untilAborted };
  const consuming = guarded.consume("pod", idle, stop)[Symbol.asyncIterator]().next();
  consuming.catch(() => {});
  await clock.advance(0);
  const [demand] = demands;
  assert.ok(demand);
  let woken = false;
  const waiting = demand.changed(stop.signal).then(() => woken = true);
  waiting.catch(() => {});
  await clock.advance(10_000);
  assert.ok(!woken, "there is room as before");
  state.leads = false;
  assert.equal(demand.free(), 0);
  await clock.advance(100);
  state.leads = true;
  await clock.advance(1_000);
  assert.ok(woken);
  assert.equal(demand.free(), 4);
  stop.abort();
  await clock.advance(0);
});

Deno.test("guardPorts() passes on what a backend says of itself", () => {
  const clock = createFakeClock();
  const untoldEnds = { silenceMs: 180_000, leavingMs: 3_000 };
  const store = createFakeStore();
  const { backends: [guarded] } = guardPorts({
    gitea: createFakeGitea(),
    queue: createFakeQueue({ clock }),
    records: store.records(),
    control: store.control,
    backends: [createFakeBackend({ name: "vm", clock, untoldEnds })],
  }, { clock, guard() {}, publish: () => Promise.reject(new Error("Nothing is published here")) });
  assert.deepEqual(guarded?.untoldEnds, untoldEnds);
  assert.equal(guarded.bindsForGood, true);
  assert.equal(guarded.name, "vm");
});
