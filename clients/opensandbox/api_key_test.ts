import assert from "node:assert/strict";
import { SandboxError } from "../../backends/vm/sandboxes.ts";
import { Secret } from "../../lib/secret.ts";
import { FAKE_KEY, startFakeOpenSandbox } from "../../tests/fakes/opensandbox.ts";
import { call } from "../../tests/support/calls.ts";
import {
  answer,
  NEW_SANDBOX,
  openLifecycle,
  pageOf,
  spoil,
} from "../../tests/support/lifecycle_setup.ts";
import { rejection } from "../../tests/support/rejections.ts";

Deno.test("a key that no header can carry is refused at once, and not shown", async () => {
  await using server = startFakeOpenSandbox();
  for (const key of ["planted\nkey", "planted\r\nx: y", "geplänt", "plan\u0000ted"]) {
    assert.throws(() => openLifecycle(server, { apiKey: new Secret(key) }), (error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, /OPENSANDBOX_API_KEY/);
      assert.ok(!Deno.inspect(error).includes(key));
      return true;
    });
  }
});

Deno.test("the capability is taken out of what an answer quotes of a create", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  const capability = "planted-capability-0123456789";
  const environment = { CI_RUNNER_CAPABILITY: capability, SHORT: "x" };
  for (const body of [`<html>${capability}</html>`, { code: "X", message: `no ${capability}` }]) {
    answer(server, ["POST", body], { status: 400 });
    const error = await rejection(SandboxError, api.create({ ...NEW_SANDBOX, environment }, call));
    assert.match(error.message, /\[secret\]/);
    assert.ok(!Deno.inspect(error).includes(capability));
  }
});

Deno.test("a key that was replaced in its file is read again when the old one is refused", async () => {
  await using server = startFakeOpenSandbox();
  const old = new Secret("old-planted-key");
  let inFile = "old-planted-key";
  let reads = 0;
  const options = {
    apiKey: old,
    readKey() {
      reads++;
      return Promise.resolve(new Secret(inFile));
    },
  };
  using api = openLifecycle(server, options);
  assert.equal((await rejection(SandboxError, api.list({}, call))).code, "unauthorized");
  assert.deepEqual([reads, server.requests.length], [1, 1]);
  inFile = "broken\nkey";
  assert.equal((await rejection(SandboxError, api.list({}, call))).code, "unauthorized");
  inFile = FAKE_KEY;
  const made = await api.create(NEW_SANDBOX, call);
  assert.equal(server.created.length, 1);
  assert.deepEqual(server.requests.slice(-2).map(({ key }) => key), ["old-planted-key", FAKE_KEY]);
  await api.get(made.id, call);
  assert.equal(reads, 3, "not while it is accepted");
  const body = { code: "X", message: `not old-planted-key but ${FAKE_KEY}` };
  answer(server, ["GET", body], { status: 400 });
  assert.match(
    (await rejection(SandboxError, api.list({}, call))).message,
    /not \[secret\] but \[secret\]/,
  );
});

Deno.test("a request is not repeated with another key by a process that may not act any more", async () => {
  await using server = startFakeOpenSandbox();
  let asked = 0;
  using api = openLifecycle(server, {
    apiKey: new Secret("old"),
    readKey: () => Promise.resolve(new Secret(FAKE_KEY)),
    before() {
      if (asked++ > 0) throw new Error("does not lead");
    },
  });
  await assert.rejects(api.create(NEW_SANDBOX, call), /does not lead/);
  assert.deepEqual(server.created, []);
});

Deno.test("a key that is a word of the answers takes nothing out of them", async () => {
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server, { apiKey: new Secret("vm") });
  const metadata = { "ci.example.org/backend": "vm" };
  const one = { ...server.plant({ metadata }), status: { state: "Running", reason: "vm" } };
  answer(server, ["GET", pageOf([one], 1, false)]);
  const [found] = await api.list(metadata, call);
  assert.deepEqual(found?.metadata, metadata);
  assert.equal(found?.reason, "vm");
});

Deno.test("a key is taken out of words in JSON also where it is escaped there", async () => {
  await using server = startFakeOpenSandbox();
  const key = 'pl"an\\ted';
  using api = openLifecycle(server, { apiKey: new Secret(key) });
  answer(server, ["GET", { detail: `you sent ${key}` }], { status: 400 });
  const quoted = await rejection(SandboxError, api.list({}, call));
  assert.match(quoted.message, /you sent \[secret\]/);
  assert.ok(!quoted.message.includes("an\\ted"));
});

Deno.test("the key goes to the Lifecycle API alone, and into no error", async () => {
  await using elsewhere = startFakeOpenSandbox();
  await using server = startFakeOpenSandbox();
  using api = openLifecycle(server);
  await api.create(NEW_SANDBOX, call);
  assert.deepEqual(server.requests.map(({ key }) => key), [FAKE_KEY]);
  const headers = { location: `${elsewhere.url}/v1/sandboxes` };
  spoil(server, { method: "GET", answer: { kind: "status", status: 307, body: "", headers } });
  const moved = await rejection(SandboxError, api.list({}, call));
  assert.match(moved.message, /307.*OPENSANDBOX_API/);
  assert.deepEqual(elsewhere.requests, []);
  const body = JSON.stringify({ code: "X", message: `you sent ${FAKE_KEY}` });
  spoil(server, { method: "GET", answer: { kind: "status", status: 400, body } });
  const quoted = await rejection(SandboxError, api.list({}, call));
  assert.doesNotMatch(Deno.inspect(quoted), new RegExp(FAKE_KEY));
  assert.match(quoted.message, /you sent \[secret\]/);
  assert.throws(() => openLifecycle(server, { apiKey: new Secret("") }), /OPENSANDBOX_API_KEY/);
});
