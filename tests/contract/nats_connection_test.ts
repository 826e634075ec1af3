import assert from "node:assert/strict";
import { demandApi } from "../../clients/nats/api.ts";
import { connectNats, type NatsOptions } from "../../clients/nats/connection.ts";
import type { Json } from "../../clients/nats/json.ts";
import { lostRecordsAt } from "../../clients/nats/lost_records.ts";
import { ensureStreams } from "../../clients/nats/streams.ts";
import { watchBucket } from "../../clients/nats/watch_bucket.ts";
import { createGateCertificate } from "../../clients/x509/gate_certificate.ts";
import { QueueError } from "../../controller/queue.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { Secret } from "../../lib/secret.ts";
import { call } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { startNats } from "../support/nats.ts";
import { connectTo, DEPS, NAMES } from "../support/nats_world.ts";

const nobody: NatsOptions = {
  servers: [],
  user: null,
  password: null,
  credsFile: null,
  caFile: null,
  reconnectWaitMs: 100,
};
const refused = (text: RegExp) => (error: unknown) =>
  error instanceof QueueError && error.code === "refused" && !error.retryable &&
  text.test(error.message) && !error.message.includes("wrong-password");

Deno.test("connectNats() waits for a server that may come, and says so", async () => {
  await using nats = await startNats();
  await nats.kill9();
  await using connection = connectTo(nats);
  await eventually(() => connection.status().detail !== null, { what: "a first failure" });
  assert.equal(connection.status().kind, "connecting");
  assert.match(connection.status().detail ?? "", /no answer/);
  await nats.restart();
  const { maxPayload, version } = await connection.ready(call);
  assert.ok(maxPayload >= 1_048_576 && /^2\./.test(version));
  assert.equal(connection.status().kind, "connected");
  assert.equal(connection.status().detail, null);
});

/** Accepts, says `words`, and keeps the connection until it is disposed of. */
function listenAsStranger(words: Uint8Array | null) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open: Deno.Conn[] = [];
  const accepted = Promise.withResolvers<void>();
  const serve = async (peer: Deno.Conn) => {
    while (words !== null) await peer.write(words);
  };
  const serving: Promise<void>[] = [];
  const running = (async () => {
    for await (const peer of listener) {
      open.push(peer);
      serving.push(serve(peer).catch(() => {}));
      accepted.resolve();
    }
  })();
  return {
    url: `nats://127.0.0.1:${listener.addr.port}`,
    accepted: accepted.promise,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const peer of open) peer.close();
      await Promise.all([running, ...serving]);
    },
  };
}

Deno.test("connectNats() is closed in a second while a cluster of strangers accepts and says nothing", async () => {
  const strangers = [1, 2, 3].map(() => listenAsStranger(null));
  const clock = createFakeClock();
  const servers = strangers.map(({ url }) => url);
  const connection = connectNats({ ...nobody, servers }, { ...DEPS, clock });
  await Promise.race(strangers.map(({ accepted }) => accepted));
  let closed = false;
  const closing = connection[Symbol.asyncDispose]().then(() => closed = true);
  await clock.advance(1_000);
  assert.ok(closed);
  await closing;
  for (const stranger of strangers) await stranger[Symbol.asyncDispose]();
});

Deno.test("connectNats() waits while something answers that never ends its first line, and says so", async () => {
  await using stranger = listenAsStranger(new Uint8Array(64 * 1024));
  await using connection = connectNats({ ...nobody, servers: [stranger.url] }, DEPS);
  await eventually(() => connection.status().detail !== null, { what: "a first failure" });
  assert.equal(connection.status().kind, "connecting");
  assert.match(connection.status().detail ?? "", /what answers there is no NATS server; check/);
});

Deno.test("connectNats() reports a lost connection and comes back", async () => {
  await using nats = await startNats();
  await using connection = connectTo(nats);
  await connection.ready(call);
  await nats.kill9();
  await eventually(() => connection.status().kind === "disconnected", { what: "the loss" });
  await nats.restart();
  await eventually(() => connection.status().kind === "connected", { what: "the return" });
});

Deno.test("connectNats() fails at once when the credentials are wrong", async () => {
  await using nats = await startNats({
    config: 'authorization { user: "gdr", password: "right" }',
  });
  const options = { ...nobody, servers: [nats.url], user: "gdr" };
  await using wrong = connectNats({ ...options, password: new Secret("wrong-password") }, DEPS);
  await assert.rejects(wrong.ready(call), refused(/refuses the credentials; check NATS_USER/));
  assert.equal(wrong.status().kind, "failed");
  await assert.rejects(
    ensureStreams(wrong, NAMES, { ...DEPS, ...call }),
    refused(/refuses the credentials/),
  );
  await using right = connectNats({ ...options, password: new Secret("right") }, DEPS);
  await right.ready(call);
});

Deno.test("connectNats() fails at once when a file is missing", async () => {
  for (const file of ["credsFile", "caFile"] as const) {
    const options = { ...nobody, servers: ["nats://127.0.0.1:1"], [file]: "/does/not/exist" };
    await using connection = connectNats(options, DEPS);
    await assert.rejects(connection.ready(call), refused(/"\/does\/not\/exist" cannot be read/));
  }
});

Deno.test("connectNats() fails at once when the credentials file is none", async () => {
  await using nats = await startNats();
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "not a credentials file");
    const options = { ...nobody, servers: [nats.url], credsFile: file };
    await using connection = connectNats(options, DEPS);
    await assert.rejects(connection.ready(call), refused(/check NATS_CREDS_FILE/));
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("connectNats() fails at once when TLS is asked of a server that has none", async () => {
  await using nats = await startNats();
  const options = { ...nobody, servers: [nats.url.replace("nats:", "tls:")] };
  await using connection = connectNats(options, DEPS);
  await assert.rejects(connection.ready(call), refused(/check NATS_URL/));
});

Deno.test("connectNats() trusts the server that NATS_CA_FILE vouches for, and no other", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const path = (name: string) => `${dir}/${name}`;
    const own = await createGateCertificate("localhost", Date.now());
    const foreign = await createGateCertificate("localhost", Date.now());
    await Deno.writeTextFile(path("cert.pem"), own.certificatePem);
    await Deno.writeTextFile(path("key.pem"), own.privateKeyPem);
    await Deno.writeTextFile(path("foreign.pem"), foreign.certificatePem);
    await using nats = await startNats({
      config: `tls { cert_file: "${path("cert.pem")}", key_file: "${path("key.pem")}" }`,
    });
    const servers = [nats.url.replace("nats://127.0.0.1", "tls://localhost")];
    await using trusted = connectNats({ ...nobody, servers, caFile: path("cert.pem") }, DEPS);
    await trusted.ready(call);
    await using wrong = connectNats({ ...nobody, servers, caFile: path("foreign.pem") }, DEPS);
    await assert.rejects(wrong.ready(call), refused(/is not trusted .*check NATS_CA_FILE/));
    await using none = connectNats({ ...nobody, servers }, DEPS);
    await assert.rejects(none.ready(call), refused(/is not trusted .*check NATS_CA_FILE/));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("connectNats() can be disposed while it waits", async () => {
  const options = { ...nobody, servers: ["nats://127.0.0.1:1"] };
  const connection = connectNats(options, DEPS);
  const ready = connection.ready(call);
  await Promise.all([
    assert.rejects(ready, /the connection is closed/),
    connection[Symbol.asyncDispose](),
  ]);
  assert.equal(connection.status().kind, "closed");
});

Deno.test("ready() rejects when its signal aborts", async () => {
  await using connection = connectNats({ ...nobody, servers: ["nats://127.0.0.1:1"] }, DEPS);
  const reason = new Error("stopped by the test");
  const stop = new AbortController();
  const ready = connection.ready({ signal: stop.signal });
  stop.abort(reason);
  await assert.rejects(ready, (error) => error === reason);
});

Deno.test("ensureStreams() makes what is absent, and finds it right the next time", async () => {
  await using nats = await startNats();
  await using connection = connectTo(nats);
  const made = await ensureStreams(connection, NAMES, { ...DEPS, ...call });
  assert.deepEqual(made, {
    made: ["CI_RUNNER", "KV_CI_RUNNER_STATE", "CI_RUNNER_EVENTS"],
    bucketLost: false,
  });
  assert.deepEqual(await ensureStreams(connection, NAMES, { ...DEPS, ...call }), {
    made: [],
    bucketLost: false,
  });
  const { config } = await demandApi(connection, {
    path: "STREAM.INFO.CI_RUNNER",
    action: "Look",
  }, call) as { config: Json };
  assert.equal(config.storage, "file");
  assert.equal(config.retention, "workqueue");
  assert.equal(config.duplicate_window, 600_000_000_000);
  assert.deepEqual(config.subjects, ["ci.assignment.*"]);
  await demandApi(connection, { path: "STREAM.DELETE.KV_CI_RUNNER_STATE", action: "Delete" }, call);
  const again = await ensureStreams(connection, NAMES, { ...DEPS, ...call });
  assert.deepEqual(again, { made: ["KV_CI_RUNNER_STATE"], bucketLost: true });
});

Deno.test("lostRecordsAt() tells every process for a day that the bucket was missing", async () => {
  await using nats = await startNats();
  await using connection = connectTo(nats);
  await ensureStreams(connection, NAMES, { ...DEPS, ...call });
  let now = 1_000_000;
  const clock = { ...DEPS.clock, now: () => now };
  const ask = (bucketLost: boolean) => lostRecordsAt(connection, { bucketLost, clock, ...call });
  assert.equal(await ask(false), null);
  assert.deepEqual(await Promise.all([ask(true), ask(true)]), [now, now]);
  assert.equal(await ask(true), now);
  now += 86_399_000;
  assert.equal(await ask(false), 1_000_000);
  now += 1_000;
  assert.equal(await ask(false), null);
});

Deno.test("watchBucket() tells a bucket that is gone from a server that is away", async () => {
  await using nats = await startNats();
  await using connection = connectTo(nats);
  await ensureStreams(connection, NAMES, { ...DEPS, ...call });
  const clock = createFakeClock();
  const stop = new AbortController();
  let lost = 0;
  const watching = watchBucket(connection, {
    clock,
    signal: stop.signal,
    onLost: () => void lost++,
  });
  await eventually(() => clock.pending > 0, { what: "the first answer" });
  await nats.kill9();
  await clock.advance(5_000);
  await nats.restart();
  await eventually(() => clock.pending > 0, { what: "the next answer" });
  assert.equal(lost, 0);
  await demandApi(connection, { path: "STREAM.DELETE.KV_CI_RUNNER_STATE", action: "Delete" }, call);
  await clock.advance(5_000);
  await watching;
  assert.equal(lost, 1);
});

Deno.test("watchBucket() ends with its signal", async () => {
  await using nats = await startNats();
  await using connection = connectTo(nats);
  await ensureStreams(connection, NAMES, { ...DEPS, ...call });
  const stop = new AbortController();
  const watching = watchBucket(connection, {
    ...DEPS,
    signal: stop.signal,
    onLost: () => assert.fail("it is there"),
  });
  stop.abort();
  await watching;
});

const right: Json = {
  name: "CI_RUNNER",
  subjects: ["ci.assignment.*"],
  retention: "workqueue",
  storage: "file",
  discard: "new",
  allow_direct: true,
  duplicate_window: 600_000_000_000,
  num_replicas: 1,
};
const differing: [string, Json, string][] = [
  ["retention", { ...right, retention: "limits" }, `retention is "limits", needed is "workqueue"`],
  ["storage", { ...right, storage: "memory" }, `storage is "memory", needed is "file"`],
  ["discard", { ...right, discard: "old" }, `discard is "old", needed is "new"`],
  ["allow_direct", { ...right, allow_direct: false }, "allow_direct is false, needed is true"],
  [
    "duplicate_window",
    { ...right, duplicate_window: 60_000_000_000 },
    "duplicate_window is 60000000000, needed is 600000000000",
  ],
  [
    "max_age",
    { ...right, max_age: 3_600_000_000_000 },
    "max_age is 3600000000000, needed is 0",
  ],
  [
    "subjects",
    { ...right, subjects: ["ci.other.>", "ci.assignment.pod"] },
    `subjects is ["ci.other.>","ci.assignment.pod"], needed is ["ci.assignment.pod","ci.assignment.vm"]`,
  ],
];
Deno.test("ensureStreams() names what differs in an existing stream, and never changes it", async (t) => {
  await using nats = await startNats();
  await using connection = connectTo(nats);
  for (const [field, config, text] of differing) {
    await t.step(field, async () => {
      const path = "STREAM.CREATE.CI_RUNNER";
      await demandApi(connection, { path, body: config, action: "Make" }, call);
      await assert.rejects(
        ensureStreams(connection, NAMES, { ...DEPS, ...call }),
        (error) =>
          error instanceof QueueError && error.code === "differs" && !error.retryable &&
          error.message.includes(`stream "CI_RUNNER"`) && error.message.includes(text),
      );
      await demandApi(connection, { path: "STREAM.DELETE.CI_RUNNER", action: "Delete" }, call);
    });
  }
  const others = { ...right, subjects: ["ci.assignment.>"], max_msgs: 5, description: "mine" };
  await demandApi(connection, {
    path: "STREAM.CREATE.CI_RUNNER",
    body: others,
    action: "Make",
  }, call);
  await ensureStreams(connection, NAMES, { ...DEPS, ...call });
});
