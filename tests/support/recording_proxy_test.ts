import assert from "node:assert/strict";
import { startRecordingProxy } from "./recording_proxy.ts";

Deno.test("startRecordingProxy() passes requests as they came and notes their paths", async () => {
  const seen: string[] = [];
  const upstream = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname, search } = new URL(request.url);
      seen.push(`${request.method} ${pathname}${search} ${await request.text()}`);
      return new Response("made", { status: 201, headers: { "x-of": "upstream" } });
    },
  );
  {
    await using proxy = await startRecordingProxy(upstream.addr);
    const response = await fetch(`${proxy.url}/some/path?query=1`, {
      method: "POST",
      body: "text",
    });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("x-of"), "upstream");
    assert.equal(await response.text(), "made");
    assert.deepEqual(seen, ["POST /some/path?query=1 text"]);
    assert.deepEqual(proxy.requests.map(({ method, path }) => ({ method, path })), [
      { method: "POST", path: "/some/path" },
    ]);
    assert.equal(proxy.count((path) => path.startsWith("/some")), 1);
    proxy.clear();
    assert.equal(proxy.requests.length, 0);
  }
  await upstream.shutdown();
});

Deno.test("startRecordingProxy() answers 502 when the server is away", async () => {
  const gone = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { hostname, port } = gone.addr;
  gone.close();
  await using proxy = await startRecordingProxy({ hostname, port });
  const response = await fetch(`${proxy.url}/`);
  assert.equal(response.status, 502);
  await response.body?.cancel();
});
