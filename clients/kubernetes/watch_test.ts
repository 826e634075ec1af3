import assert from "node:assert/strict";
import { status } from "../../tests/fakes/api_server.ts";
import { startWatchWorld, type Told, type WatchWorld } from "../../tests/support/watch_world.ts";

const names = (told: readonly Told[]) =>
  told.map((event) =>
    event.kind === "listed"
      ? `listed ${event.items.map(({ name }) => name).join("+")}`
      : `${event.kind} ${event.item.name}`
  );

/** A world whose consumer has listed "a" and watches. */
async function watching(options?: Parameters<typeof startWatchWorld>[0]): Promise<WatchWorld> {
  const world = startWatchWorld({ prepare: (server) => void server.put("a"), ...options });
  await world.pass(0);
  assert.deepEqual(names(world.told), ["listed a"]);
  assert.equal(world.server.open, 1);
  return world;
}

Deno.test("listAndWatch() lists, then tells each change once", async () => {
  await using world = await watching();
  world.server.put("b");
  world.server.put("a");
  world.server.remove("b");
  await world.pass(0);
  assert.deepEqual(names(world.told), ["listed a", "changed b", "changed a", "gone b"]);
  assert.equal(world.heard, 4);
  assert.equal(world.keeper.status().state, "up");
});

Deno.test("listAndWatch() asks for an uncompressed watch with bookmarks from the list's version", async () => {
  await using world = await watching();
  const [query] = world.server.watched;
  assert.equal(query?.get("resourceVersion"), "101");
  assert.equal(query?.get("allowWatchBookmarks"), "true");
  assert.equal(query?.get("timeoutSeconds"), "300");
  assert.equal(world.server.headers.get("accept-encoding"), "identity");
});

Deno.test("listAndWatch() lists page by page and tells all pages as one", async () => {
  await using world = startWatchWorld({
    pageSize: 2,
    prepare: (server) => void ["a", "b", "c", "d", "e"].map(server.put),
  });
  await world.pass(0);
  assert.deepEqual(names(world.told), ["listed a+b+c+d+e"]);
});

Deno.test("listAndWatch() goes on from the last event when the server ends a watch", async () => {
  await using world = await watching();
  world.server.put("b");
  await world.pass(60_000);
  world.server.cut("clean");
  world.server.put("c");
  await world.pass(0);
  assert.deepEqual(names(world.told), ["listed a", "changed b", "changed c"]);
  assert.deepEqual(world.server.watched.map((query) => query.get("resourceVersion")), [
    "101",
    "102",
  ]);
  assert.deepEqual(world.logged, []);
});

Deno.test("listAndWatch() goes on from a bookmark", async () => {
  await using world = await watching();
  world.server.bookmark();
  await world.pass(2_000);
  world.server.compact();
  world.server.cut("clean");
  await world.pass(0);
  assert.equal(world.server.watched.at(-1)?.get("resourceVersion"), "102");
  assert.equal(world.server.listedAt.length, 1);
  assert.equal(world.heard, 2);
});

for (const how of ["broken", "mid_line"] as const) {
  Deno.test(`listAndWatch() neither loses nor doubles anything when a watch is cut: ${how}`, async () => {
    await using world = await watching();
    world.server.put("b");
    await world.pass(2_000);
    world.server.cut(how);
    world.server.put("c");
    await world.pass(1_000);
    assert.deepEqual(names(world.told), ["listed a", "changed b", "changed c"]);
    assert.equal(world.server.listedAt.length, 1);
  });
}

for (const expired of ["event", "status"] as const) {
  Deno.test(`listAndWatch() lists again at once when its place is forgotten: ${expired}`, async () => {
    await using world = await watching();
    await world.pass(60_000);
    world.server.expired = expired;
    world.server.cut("clean");
    world.server.remove("a");
    world.server.put("b");
    world.server.compact();
    await world.pass(0);
    assert.deepEqual(names(world.told), ["listed a", "listed b"]);
    world.server.put("c");
    await world.pass(0);
    assert.deepEqual(names(world.told).at(-1), "changed c");
    assert.equal(world.keeper.status().state, "up");
  });
}

Deno.test("listAndWatch() never lists more than once a second, whatever the server does", async () => {
  const world = startWatchWorld({ random: Math.random });
  const { server } = world;
  for (let i = 0; i < 400; i++) {
    server.put(`n${i % 7}`);
    server.compact();
    server.cut((["clean", "broken", "mid_line"] as const)[i % 3] ?? "clean");
    if (i % 5 === 0) server.say("{");
    await world.pass(50);
  }
  const gaps = server.listedAt.slice(1).map((at, i) => at - (server.listedAt[i] ?? 0));
  assert.ok(gaps.length >= 2, "it went on listing");
  assert.ok(Math.min(...gaps) >= 1_000, `gaps: ${gaps}`);
  await world.pass(30_000);
  assert.deepEqual(world.believed, server.objects());
  await world[Symbol.asyncDispose]();
});

Deno.test("listAndWatch() gives a silent watch up after 90 s and goes on from where it was", async () => {
  await using world = await watching();
  world.server.put("b");
  await world.pass(0);
  world.server.stall();
  world.server.put("c");
  await world.pass(89_000);
  assert.equal(world.server.watched.length, 1);
  assert.equal(world.suspected, 0);
  await world.pass(2_000);
  assert.deepEqual(names(world.told), ["listed a", "changed b", "changed c"]);
  assert.equal(world.suspected, 1);
  assert.equal(world.server.listedAt.length, 1);
});

Deno.test("listAndWatch() takes bookmarks for signs of life", async () => {
  await using world = await watching();
  for (let minute = 0; minute < 10; minute++) {
    await world.pass(60_000);
    world.server.bookmark();
  }
  await world.pass(0);
  assert.equal(world.server.watched.length, 1);
  assert.equal(world.heard, 11);
});

Deno.test("listAndWatch() waits as long as Retry-After says", async () => {
  await using world = startWatchWorld();
  world.server.fail(1, () =>
    Response.json(status(429, "TooManyRequests", "later"), {
      status: 429,
      headers: { "retry-after": "7" },
    }));
  // The first request has gone out already; this is the list.
  await world.pass(6_900);
  assert.deepEqual(names(world.told), []);
  assert.equal(world.keeper.status().state, "down");
  assert.match(
    world.keeper.status().lastError ?? "",
    /Watch "things": .* 429 TooManyRequests: later/,
  );
  await world.pass(200);
  assert.deepEqual(names(world.told), ["listed "]);
  assert.equal(world.keeper.status().state, "up");
});

Deno.test("listAndWatch() waits longer and longer for a server that fails, at most 10 s, and says so twice a minute", async () => {
  await using world = startWatchWorld({ random: () => 1 });
  let tries = 0;
  const failed = Array.from({ length: 60 }, () => 0);
  world.server.fail(1_000, () => {
    tries += 1;
    return Response.json(status(500, "InternalError", "x"), { status: 500 });
  });
  for (const second of failed.keys()) {
    await world.pass(1_000);
    failed[second] = tries;
  }
  // After 0, 1.25 (the spacing of lists), 2.5, 4.5, 8.5, 16.5 s, then every 10 s.
  assert.equal(failed[9], 5);
  assert.equal(failed[59], 10);
  assert.deepEqual(world.logged, Array(2).fill("kubernetes watch interrupted"));
  assert.equal(world.keeper.status().state, "down");
});

Deno.test("listAndWatch() shows missing rights as trouble of the watch, not of the server", async () => {
  await using world = startWatchWorld();
  world.server.fail(
    1_000,
    () =>
      Response.json(status(403, "Forbidden", 'User "u" cannot list resource "things" in ...'), {
        status: 403,
      }),
  );
  await world.pass(60_000);
  const { state, lastError } = world.keeper.status();
  assert.equal(state, "degraded");
  assert.match(lastError ?? "", /^Watch "things": .* 403 Forbidden: .*give the service account/);
});

Deno.test("listAndWatch() does not ask in a tight loop when watches end at once", async () => {
  await using world = await watching();
  for (let i = 0; i < 100; i++) {
    world.server.cut("clean");
    await world.pass(100);
  }
  assert.ok(world.server.watched.length < 10, `watches: ${world.server.watched.length}`);
});

for (
  const [what, line] of [
    ["a line that is no JSON", '{"type":"ADD'],
    [
      "an event of an unknown type",
      '{"type":"MOVED","object":{"metadata":{"resourceVersion":"7"}}}',
    ],
    ["an event without a version", '{"type":"ADDED","object":{"metadata":{"name":"x"}}}'],
    ["a line without end", "x".repeat(9 * 2 ** 20)],
  ] as const
) {
  Deno.test(`listAndWatch() lists again after ${what}`, async () => {
    await using world = await watching();
    world.server.say(line);
    world.server.put("b");
    await world.pass(3_000);
    assert.deepEqual(names(world.told), ["listed a", "listed a+b"]);
    world.server.put("c");
    await world.pass(0);
    assert.deepEqual(names(world.told).at(-1), "changed c");
  });
}

Deno.test("listAndWatch() lists again when the server's store was set back", async () => {
  await using world = await watching();
  world.server.turnBack();
  world.server.put("old");
  await world.pass(3_000);
  assert.deepEqual(names(world.told), ["listed a", "listed old"]);
});

Deno.test("listAndWatch() starts over when a page of the list has expired", async () => {
  await using world = startWatchWorld({
    pageSize: 1,
    prepare(server) {
      server.put("a");
      server.put("b");
      server.put("c");
      const { handle } = server;
      let asked = 0;
      server.handle = (request) => {
        asked += 1;
        if (asked === 2) {
          server.put("d");
          server.compact();
        }
        return handle(request);
      };
    },
  });
  await world.pass(0);
  assert.deepEqual(names(world.told), []);
  await world.pass(3_000);
  assert.deepEqual(names(world.told), ["listed a+b+c+d"]);
});

Deno.test("listAndWatch() leaves out what cannot be read, and nothing else", async () => {
  await using world = await watching({
    decode(thing) {
      if (thing.name === "bad") throw new TypeError("unreadable");
      return thing.name === "skip" ? undefined : thing;
    },
  });
  for (const name of ["bad", "skip", "good"]) world.server.put(name);
  await world.pass(0);
  assert.deepEqual(names(world.told), ["listed a", "changed good"]);
  assert.deepEqual(world.logged, ["kubernetes object left out: it cannot be read"]);
});

for (const when of ["listing", "watching", "waiting"] as const) {
  Deno.test(`listAndWatch() ends without an error when it is aborted while ${when}`, async () => {
    await using world = startWatchWorld();
    if (when === "waiting") world.server.fail(1, () => new Response("no", { status: 503 }));
    if (when !== "listing") await world.pass(0);
    assert.equal(world.ended, false);
    world.abort();
    await world.pass(0);
    assert.equal(world.ended, true);
    assert.equal(world.server.open, 0);
  });
}
