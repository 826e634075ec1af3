import assert from "node:assert/strict";
import { everyAddress } from "../lib/every_address.ts";
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
