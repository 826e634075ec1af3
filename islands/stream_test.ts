import assert from "node:assert/strict";
import type { Live } from "../components/live.ts";
import { type Message, openStream, type StreamHost } from "./stream.ts";

/** An EventSource that a test drives. */
class FakeSource extends EventTarget {
  closed = false;

  constructor(readonly url: string) {
    super();
  }

  close() {
    this.closed = true;
  }

  say(event: string, data: unknown, lastEventId = "") {
    this.dispatchEvent(new MessageEvent(event, { data: JSON.stringify(data), lastEventId }));
  }
}

function setup(random = 0) {
  const sources: FakeSource[] = [];
  const states: Live[] = [];
  const batches: (readonly Message[])[] = [];
  const timers = new Map<number, { at: number; run: () => void }>();
  const document = Object.assign(new EventTarget(), { hidden: false });
  let now = 1000;
  let count = 0;
  const host: StreamHost = {
    open(url) {
      const source = new FakeSource(url);
      sources.push(source);
      return source;
    },
    document,
    now: () => now,
    random: () => random,
    later(run, ms) {
      const id = count++;
      timers.set(id, { at: now + ms, run });
      return () => timers.delete(id);
    },
  };
  const stop = new AbortController();
  openStream({
    lastEventId: "7-3",
    events: ["assignment"],
    onMessages: (messages) => batches.push(messages),
    onState: (state) => states.push(state),
    signal: stop.signal,
    host,
  });
  return {
    sources,
    states,
    batches,
    timers,
    stop,
    get source() {
      const last = sources.at(-1);
      assert.ok(last);
      return last;
    },
    advance(ms: number) {
      const end = now + ms;
      while (true) {
        const [next] = [...timers].filter(([, { at }]) => at <= end).sort((a, b) =>
          a[1].at - b[1].at
        );
        if (next === undefined) break;
        timers.delete(next[0]);
        now = next[1].at;
        next[1].run();
      }
      now = end;
    },
    hide(hidden: boolean) {
      document.hidden = hidden;
      document.dispatchEvent(new Event("visibilitychange"));
    },
  };
}

const change = { at: "2027-01-15T08:00:00.000Z", old: null, new: { id: "a" } };

Deno.test("openStream() starts after the page's last event and hands over at most each 250 ms", () => {
  const t = setup();
  assert.equal(t.source.url, "/api/v1/events?last=7-3");
  t.source.dispatchEvent(new Event("open"));
  assert.deepEqual(t.states.map(({ kind }) => kind), ["connecting", "live"]);
  for (let i = 0; i < 10; i++) {
    t.source.say("assignment", change, `7-${4 + i}`);
    t.advance(20);
  }
  assert.equal(t.batches.length, 0);
  t.advance(50);
  assert.deepEqual(t.batches.map((batch) => batch.length), [10]);
  t.stop.abort();
});

Deno.test("openStream() comes back after 1 to 30 s, later each time, with its last id", () => {
  const t = setup(1);
  t.source.dispatchEvent(new Event("open"));
  t.source.say("assignment", change, "7-9");
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) {
    const before = t.sources.length;
    t.source.dispatchEvent(new Event("error"));
    assert.ok(t.sources.at(-1)?.closed);
    let waited = 0;
    while (t.sources.length === before) {
      t.advance(500);
      waited += 500;
    }
    waits.push(waited);
  }
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  assert.equal(t.source.url, "/api/v1/events?last=7-9");
  const lost = t.states.filter((state) => state.kind === "lost");
  assert.deepEqual(new Set(lost.map(({ since }) => since)), new Set([1000]));
  t.source.dispatchEvent(new Event("open"));
  assert.equal(t.states.at(-1)?.kind, "live");
  t.stop.abort();
});

Deno.test("openStream() gives up a connection that does not come about in 20 s, and tries again", () => {
  const t = setup();
  t.advance(19_999);
  assert.equal(t.sources.length, 1);
  t.advance(1);
  assert.ok(t.sources[0]?.closed);
  assert.equal(t.states.at(-1)?.kind, "lost");
  t.advance(1_000);
  assert.equal(t.sources.length, 2);
  t.source.dispatchEvent(new Event("open"));
  assert.equal(t.states.at(-1)?.kind, "live");
  t.stop.abort();
  assert.equal(t.timers.size, 0);
});

Deno.test("openStream() spreads the returns: never under 1 s", () => {
  const t = setup(0);
  for (let i = 0; i < 6; i++) {
    t.source.dispatchEvent(new Event("error"));
    const before = t.sources.length;
    t.advance(999);
    assert.equal(t.sources.length, before);
    t.advance(1);
    assert.equal(t.sources.length, before + 1);
  }
  t.stop.abort();
});

Deno.test("openStream() is closed while the tab is hidden", () => {
  const t = setup();
  t.source.dispatchEvent(new Event("open"));
  t.hide(true);
  assert.ok(t.source.closed);
  assert.equal(t.states.at(-1)?.kind, "paused");
  t.advance(100_000);
  assert.equal(t.sources.length, 1);
  t.hide(false);
  assert.equal(t.sources.length, 2);
  assert.equal(t.states.at(-1)?.kind, "connecting");
  t.stop.abort();
});

Deno.test("openStream() takes 20 s without a word for a dead connection", () => {
  const t = setup();
  t.source.dispatchEvent(new Event("open"));
  t.advance(19_000);
  t.source.say("assignment", change, "7-4");
  t.advance(19_000);
  assert.equal(t.sources.length, 1);
  t.advance(3000);
  assert.equal(t.sources.length, 2);
  t.stop.abort();
});

Deno.test("openStream() drops a message that is not whole", () => {
  const t = setup();
  for (const data of ["{", "null", "[]", `{"at":1}`, `"x"`]) {
    t.source.dispatchEvent(new MessageEvent("assignment", { data }));
  }
  t.advance(300);
  assert.deepEqual(t.batches, []);
  t.stop.abort();
});

Deno.test("openStream() leaves nothing behind when it ends", () => {
  const t = setup();
  t.source.dispatchEvent(new Event("open"));
  t.source.say("assignment", change);
  t.stop.abort();
  assert.ok(t.source.closed);
  assert.equal(t.timers.size, 0);
  t.hide(false);
  assert.equal(t.sources.length, 1);
});
