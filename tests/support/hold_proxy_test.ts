import assert from "node:assert/strict";
import { eventually } from "./eventually.ts";
import { startHoldProxy } from "./hold_proxy.ts";

async function withServer(use: (seen: string[], port: number) => Promise<void>): Promise<void> {
  const seen: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (r) => {
    seen.push(await r.text());
    return new Response("done");
  });
  try {
    await use(seen, server.addr.port);
  } finally {
    await server.shutdown();
  }
}

const post = async (url: string, body: string, signal?: AbortSignal) => {
  const response = await fetch(`${url}/x.Y/Call`, {
    method: "POST",
    body,
    ...signal === undefined ? {} : { signal },
  });
  return await response.text();
};

Deno.test("hold() keeps a call until it is released, and its answer", () =>
  withServer(async (seen, port) => {
    await using proxy = await startHoldProxy({ hostname: "127.0.0.1", port });
    const there = proxy.hold(({ name, answer }) => name === "Call" && answer === null);
    const calling = post(proxy.url, "one");
    await there.reached;
    assert.deepEqual(seen, []);
    const back = proxy.hold(({ answer }) => answer?.status === 200);
    there.release();
    await back.reached;
    assert.deepEqual(seen, ["one"]);
    back.release();
    assert.equal(await calling, "done");
    assert.equal(await post(proxy.url, "two"), "done");
  }));

Deno.test("hold() never passes on a call whose caller went meanwhile", () =>
  withServer(async (seen, port) => {
    await using proxy = await startHoldProxy({ hostname: "127.0.0.1", port });
    const point = proxy.hold(() => true);
    const caller = new AbortController();
    const calling = post(proxy.url, "one", caller.signal);
    await point.reached;
    caller.abort();
    await assert.rejects(calling);
    // The end of the connection comes before what is sent next.
    await eventually(() => proxy.waiting === 0, { what: "the proxy to hear of it" });
    point.release();
    assert.equal(await post(proxy.url, "two"), "done");
    assert.deepEqual(seen, ["two"]);
  }));

Deno.test("drop() and down break the connection off", () =>
  withServer(async (seen, port) => {
    await using proxy = await startHoldProxy({ hostname: "127.0.0.1", port });
    const point = proxy.hold(({ answer }) => answer !== null);
    const calling = post(proxy.url, "one");
    await point.reached;
    point.drop();
    await assert.rejects(calling);
    proxy.down = true;
    await assert.rejects(post(proxy.url, "two"));
    proxy.down = false;
    assert.equal(await post(proxy.url, "three"), "done");
    assert.deepEqual(seen, ["one", "three"]);
  }));
