import assert from "node:assert/strict";
import { systemClock } from "../lib/clock.ts";
import { everyAddress } from "../lib/every_address.ts";
import { createFakeViews } from "../tests/fakes/views.ts";
import { createTestWeb } from "../tests/support/test_web.ts";
import { listenHealth, listenWeb } from "./listen.ts";

Deno.test("listenWeb() refuses an address that others can reach, and says the way out", () => {
  const web = { fetch: () => new Response() };
  for (const hostname of ["0.0.0.0", "::", "10.0.0.7", "gdr.example.org", "127.evil.example"]) {
    assert.throws(() => listenWeb(web, { hostname, port: 0 }), {
      name: "RangeError",
      message: /^Set ADMIN_LISTEN to a loopback address: ".+" can be reached by others/,
    });
  }
});

Deno.test("listenHealth() answers on its port, compresses, and stops", async () => {
  const listener = listenHealth({ fetch: () => new Response("x".repeat(5000)) }, {
    hostname: "127.0.0.1",
    port: 0,
  });
  const answer = await fetch(`http://127.0.0.1:${listener.address.port}/`);
  assert.equal((await answer.text()).length, 5000);
  await listener[Symbol.asyncDispose]();
  await assert.rejects(fetch(`http://127.0.0.1:${listener.address.port}/`));
});

Deno.test("listenHealth() without a host answers to IPv6 and to IPv4", async () => {
  await using listener = listenHealth({ fetch: () => new Response("well") }, {
    hostname: "",
    port: 0,
  });
  const { hostname, port } = listener.address;
  assert.equal(hostname, everyAddress());
  for (const host of hostname === "::" ? ["[::1]", "127.0.0.1"] : ["127.0.0.1"]) {
    assert.equal(await (await fetch(`http://${host}:${port}/`)).text(), "well", host);
  }
});

Deno.test("listenWeb() stops at once although somebody has an event stream open", async () => {
  const web = createTestWeb({
    views: createFakeViews({ clock: systemClock }, {}),
    clock: systemClock,
    hosts: ["127.0.0.1"],
  });
  const listener = listenWeb(web, { hostname: "127.0.0.1", port: 0 });
  const stream = await fetch(`http://127.0.0.1:${listener.address.port}/api/v1/events`);
  const reader = stream.body?.getReader();
  await reader?.read();
  const since = performance.now();
  await listener[Symbol.asyncDispose]();
  assert.ok(performance.now() - since < 1_000, `${performance.now() - since} ms`);
  while (!(await reader?.read())?.done);
  await web[Symbol.asyncDispose]();
});

Deno.test("listenHealth() waits no longer than two seconds for a request that does not end", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Response>();
  const listener = listenHealth({
    fetch() {
      asked.resolve();
      return answer.promise;
    },
  }, { hostname: "127.0.0.1", port: 0 });
  const request = fetch(`http://127.0.0.1:${listener.address.port}/`);
  await asked.promise;
  const since = performance.now();
  await listener[Symbol.asyncDispose]();
  const took = performance.now() - since;
  assert.ok(took > 1_900 && took < 4_000, `${took} ms`);
  answer.resolve(new Response("late"));
  assert.equal(await (await request).text(), "late");
});
