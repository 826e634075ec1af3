import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { Code, ConnectError } from "../clients/connect/error.ts";
import { abortable } from "../lib/abortable.ts";
import { systemClock } from "../lib/clock.ts";
import {
  createRecordedLogger,
  JOB_ID,
  sampleInfo,
  setupFacade,
} from "../tests/support/facade_setup.ts";
import { issueSvid } from "../tests/support/svids.ts";
import { codeOf, rows, state } from "../tests/support/facade_calls.ts";
import { eventually } from "../tests/support/eventually.ts";

Deno.test("a peer over its rate is refused while others go on", async () => {
  // Nothing comes back while the four calls are made, however slow the machine is.
  const limits = { perSecond: 0.001, burst: 3, concurrent: 2, total: 100 };
  await using given = await setupFacade({ options: { limits } });
  const { client } = await given.executor(11n);
  const other = await given.executor(12n);
  for (let i = 0; i < 3; i++) assert.equal(await codeOf(client.declare({})), "ok");
  const refusal = await client.declare({}).then(() => null, ConnectError.from);
  assert.equal(refusal?.code, Code.ResourceExhausted);
  // By this the gate tells it from a message that is too large, which it would cut.
  assert.equal(refusal?.metadata.get("retry-after"), "1");
  assert.equal(await codeOf(other.client.declare({})), "ok");
});

Deno.test("a body that does not come ends its request, and no other one", async () => {
  await using given = await setupFacade({
    options: { bodyMs: 300, limits: { perSecond: 99, burst: 99, concurrent: 1, total: 9 } },
  });
  const { info, svid, client } = await given.executor();
  const headers = Object.entries(given.headersOf(info)).map(([name, value]) => `${name}: ${value}`);
  for (const path of ["/executor/v1/heartbeat", "/api/actions/runner.v1.RunnerService/UpdateLog"]) {
    const socket = connectTls({
      host: "127.0.0.1",
      port: given.facade.port,
      ca: svid.bundlePem,
      cert: svid.certificatePem,
      key: svid.privateKeyPem,
      checkServerIdentity: () => undefined,
    });
    socket.on("error", () => {});
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/proto\r\n` +
        `content-length: 9\r\n${headers.join("\r\n")}\r\n\r\n{`,
    );
    await eventually(async () => await codeOf(client.declare({})) === Code.ResourceExhausted, {
      what: "the slow request in its place",
    });
    socket.resume();
    await once(socket, "close");
    await eventually(async () => await codeOf(client.declare({})) === "ok", { what: "the place" });
  }
  // A call that is held for longer is not cut: its body was there.
  given.events.answer = async () => {
    await new Promise((resolve) => setTimeout(resolve, 600));
    return { kind: "wait" };
  };
  assert.equal(await codeOf(client.fetchTask({})), "ok");
});

Deno.test("connections of one SPIFFE ID are bounded, those of others are not", async () => {
  await using given = await setupFacade({ options: { maxConnections: 2 } });
  const { info, svid } = await given.executor();
  const call = () => codeOf(given.runner(svid, given.headersOf(info)).ping({ data: "x" }));
  assert.deepEqual([await call(), await call(), await call()], ["ok", "ok", "no connection"]);
  const other = await issueSvid(given.authority, [`${JOB_ID}2`]);
  assert.equal(await codeOf(given.runner(other, {}).ping({ data: "x" })), "ok");
  given.closeNewest(4);
  await eventually(() => given.facade.status().connections === 0, { what: "no connection" });
  assert.equal(await call(), "ok");
});

Deno.test("createFacade() closes at once although a client has connected and says nothing", async () => {
  await using given = await setupFacade();
  const socket = connect(given.facade.port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  const closed = once(socket.resume(), "close");
  // Accepted later, so that the other one is.
  assert.equal(await codeOf((await given.executor()).client.ping({ data: "x" })), "ok");
  using limit = systemClock.timeout(5_000);
  await abortable(Promise.resolve(given.facade[Symbol.asyncDispose]()), limit.signal);
  await closed;
});

Deno.test("createFacade() survives clients that vanish in the middle of anything", async () => {
  await using given = await setupFacade();
  const { svid, client } = await given.executor();
  const options = {
    port: given.facade.port,
    host: "127.0.0.1",
    ca: svid.bundlePem,
    cert: svid.certificatePem,
    key: svid.privateKeyPem,
    checkServerIdentity: () => undefined,
  };
  const words = [
    "",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "POST /executor/v1/exit HTTP/1.1\r\nhost: x\r\n\r\n",
  ];
  for (const word of words) {
    for (const protocol of ["h2", "http/1.1"]) {
      const socket = connectTls({ ...options, ALPNProtocols: [protocol] });
      socket.on("error", () => {});
      await once(socket, "secureConnect");
      socket.write(word);
      socket.destroy();
    }
    const plain = connect(given.facade.port, "127.0.0.1");
    plain.on("error", () => {});
    await once(plain, "connect");
    plain.write(word);
    plain.destroy();
  }
  assert.equal(await codeOf(client.declare({})), "ok");
});

Deno.test("a gate that is killed in the middle of a call is no trouble of the controller", async () => {
  const logger = createRecordedLogger();
  const calls: string[] = [];
  await using given = await setupFacade({
    deps: { logger, onCall: (_, { method, code }) => void calls.push(`${method} ${code}`) },
  });
  const { svid, info } = await given.executor();
  const socket = connectTls({
    port: given.facade.port,
    host: "127.0.0.1",
    ca: svid.bundlePem,
    cert: svid.certificatePem,
    key: svid.privateKeyPem,
    checkServerIdentity: () => undefined,
    ALPNProtocols: ["http/1.1"],
  });
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  const headers = [...new Headers(given.headersOf(info))].map(([name, value]) =>
    `${name}: ${value}\r\n`
  );
  const head = `POST /executor/v1/exit HTTP/1.1\r\nhost: x\r\n${headers.join("")}`;
  socket.write(`${head}content-length: 100\r\n\r\n{"code":`);
  await eventually(() => given.facade.status().connections > 0, { what: "the connection" });
  socket.destroy();
  await eventually(() => calls.length > 0, { what: "the end of the call" });
  assert.deepEqual(calls, ["exit 400"]);
  assert.deepEqual(logger.records.filter((record) => record.startsWith("error")), []);
});

Deno.test("the facade closes at once while a FetchTask is being held", async () => {
  const given = await setupFacade();
  const info = sampleInfo(51n);
  const client = given.runner(await issueSvid(given.authority, [JOB_ID]), given.headersOf(info));
  const held = codeOf(client.fetchTask({}));
  await eventually(() => given.facade.status().connections > 0, { what: "the connection" });
  const started = performance.now();
  await given[Symbol.asyncDispose]();
  assert.ok(performance.now() - started < 2_000);
  assert.notEqual(await held, "ok");
});

Deno.test("createFacade() names the address that it cannot listen on", async () => {
  await using given = await setupFacade();
  await assert.rejects(
    setupFacade({ options: { port: given.facade.port } }),
    /Listen on "127.0.0.1:\d+" for executors: .*: set RUNNER_FACADE_LISTEN/,
  );
});

Deno.test("createFacade() listens on every address, IPv6 too, when told so", async () => {
  for (const hostname of ["::", ""]) {
    await using given = await setupFacade({ options: { hostname } });
    const { client } = await given.executor();
    assert.equal(await codeOf(client.declare({})), "ok", "by IPv4");
    (await Deno.connect({ hostname: "::1", port: given.facade.port })).close();
  }
});

/** The Connect library drains a refused body for a moment, with a timer; the last test, so that it ends alone. */
const drains = { sanitizeOps: false, sanitizeResources: false } as const;

Deno.test(
  "a 1 MiB output and 100 rows of 64 KiB pass; more than the limit and gzip bombs do not",
  drains,
  async () => {
    await using given = await setupFacade();
    const { client, svid, info } = await given.executor();
    await client.fetchTask({});
    let outputs: Readonly<Record<string, string>> = {};
    const updateTask = given.gitea.updateTask;
    given.gitea.updateTask = (update, call) => {
      outputs = update.outputs ?? {};
      return updateTask(update, call);
    };
    const big = "o".repeat(1024 * 1024);
    await client.updateTask({ state: state(11n), outputs: { big } });
    assert.equal(outputs["big"], big);
    const line = "x".repeat(64 * 1024);
    const answer = await client.updateLog({ taskId: 11n, rows: rows(...Array(100).fill(line)) });
    assert.equal(answer.ackIndex, 100n);
    const over = client.updateTask({
      state: state(11n),
      outputs: { big: "o".repeat(9 * 1024 * 1024) },
    });
    assert.equal(await codeOf(over), Code.ResourceExhausted);
    // 64 MiB of zeros in about 64 KB.
    const zeros = new Blob([new Uint8Array(64 * 1024 * 1024)]).stream();
    const packed = await new Response(zeros.pipeThrough(new CompressionStream("gzip"))).bytes();
    const bomb = await given.fetchAs(svid)(
      `${given.url}/api/actions/runner.v1.RunnerService/UpdateTask`,
      {
        method: "POST",
        headers: {
          ...given.headersOf(info),
          "content-type": "application/proto",
          "content-encoding": "gzip",
          "connect-protocol-version": "1",
        },
        body: packed,
      },
    );
    assert.equal((await bomb.json()).code, "resource_exhausted");
    // Four million empty rows in 35 KB: not the bytes are too many, but what they become.
    const empty = new Uint8Array(8_000_000);
    for (let at = 0; at < empty.length; at += 2) empty[at] = 0x1a;
    const many = new Blob([empty]).stream().pipeThrough(new CompressionStream("gzip"));
    const started = performance.now();
    const refused = await given.fetchAs(svid)(
      `${given.url}/api/actions/runner.v1.RunnerService/UpdateLog`,
      {
        method: "POST",
        headers: {
          ...given.headersOf(info),
          "content-type": "application/proto",
          "content-encoding": "gzip",
        },
        body: await new Response(many).bytes(),
      },
    );
    assert.equal((await refused.json()).code, "resource_exhausted");
    assert.ok(performance.now() - started < 1_000, "it is not decoded");
    const text = await given.fetchAs(svid)(
      `${given.url}/api/actions/runner.v1.RunnerService/UpdateLog`,
      {
        method: "POST",
        headers: { ...given.headersOf(info), "content-type": "application/json" },
        body: `{"taskId":"11"}`,
      },
    );
    assert.equal(text.status, 415);
    await client.updateTask({ state: state(11n, Result.SUCCESS) });
    assert.equal(given.gitea.tasks.get(11n)?.result, Result.SUCCESS);
  },
);
