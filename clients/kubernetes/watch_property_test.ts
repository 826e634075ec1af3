import assert from "node:assert/strict";
import { status } from "../../tests/fakes/api_server.ts";
import { fc } from "../../tests/support/property.ts";
import { startWatchWorld, type WatchWorld } from "../../tests/support/watch_world.ts";

type Step =
  | { readonly kind: "put" | "remove"; readonly name: string }
  | { readonly kind: "cut"; readonly how: "clean" | "broken" | "mid_line" }
  | { readonly kind: "compact" | "bookmark" | "stall" | "garbage" }
  | { readonly kind: "restart"; readonly expired: "event" | "status" }
  | { readonly kind: "fail"; readonly times: number; readonly code: number }
  | { readonly kind: "pass"; readonly ms: number };

const name = fc.constantFrom("a", "b", "c", "d");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom("put", "remove"), name }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("cut"),
      how: fc.constantFrom("clean", "broken", "mid_line"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("compact", "bookmark", "stall", "garbage") }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("restart"),
      expired: fc.constantFrom("event", "status"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("fail"),
      times: fc.integer({ min: 1, max: 4 }),
      code: fc.constantFrom(401, 403, 410, 429, 500, 504),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("pass"),
      ms: fc.constantFrom(0, 10, 900, 5_000, 60_000, 95_000),
    }),
  },
);

async function play({ server, pass }: WatchWorld, step: Step): Promise<void> {
  switch (step.kind) {
    case "put":
      return void server.put(step.name);
    case "remove":
      return server.remove(step.name);
    case "cut":
      return server.cut(step.how);
    case "compact":
      return server.compact();
    case "bookmark":
      return server.bookmark();
    case "stall":
      return server.stall();
    case "garbage":
      return server.say("<html>");
    case "restart":
      server.expired = step.expired;
      server.cut("broken");
      return server.compact();
    case "fail":
      return server.fail(
        step.times,
        () => Response.json(status(step.code, "Whatever", "no"), { status: step.code }),
      );
    case "pass":
      return await pass(step.ms);
    default:
      step satisfies never;
  }
}

/** What the consumer was told must be the server's history, in its order, without a hole or a double. */
function checkTold({ told, server }: WatchWorld): void {
  const lists = [...server.listed];
  let at = 0;
  for (const event of told) {
    if (event.kind === "listed") {
      const version = lists.shift() ?? 0;
      assert.ok(version >= at, `list of ${version} after version ${at}`);
      const items = new Map(event.items.map(({ name, version }) => [name, version]));
      assert.deepEqual(items, server.stateAt(version));
      at = version;
    } else {
      const next = server.history.find(({ version }) => version > at);
      assert.deepEqual(event.item, next && { name: next.name, version: next.version });
      assert.equal(event.kind, next?.type === "DELETED" ? "gone" : "changed");
      at = event.item.version;
    }
  }
  assert.deepEqual(lists, []);
}

Deno.test("listAndWatch() tells the server's history without hole or double, and ends at its state, under any faults", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 3 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (steps, pageSize, chance) => {
        await using world = startWatchWorld({ pageSize, random: () => chance });
        for (const step of steps) await play(world, step);
        // The faults end. What fails by then is asked for again, a silent watch given up, within this:
        await world.pass(240_000);
        assert.deepEqual(world.believed, world.server.objects());
        checkTold(world);
        const { listedAt } = world.server;
        const gaps = listedAt.slice(1).map((time, i) => time - (listedAt[i] ?? 0));
        assert.ok(gaps.every((gap) => gap >= 1_000), `lists apart: ${gaps}`);
        // This very moment may lie between a silent watch and the next one.
        if (world.server.open === 0) await world.pass(5_000);
        assert.equal(world.server.open, 1);
      },
    ),
    { numRuns: 120 },
  );
});
