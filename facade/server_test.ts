import assert from "node:assert/strict";
import { systemClock } from "../lib/clock.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { FetchTaskRequestSchema, Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { create, toBinary } from "../proto/runtime.ts";
import { Code, ConnectError } from "../clients/connect/error.ts";
import type { Svid, SvidSource } from "../clients/spiffe/workload_api.ts";
import { createAuthority } from "../clients/x509/trust_domain.ts";
import { executorName, instanceOf } from "../controller/model/ids.ts";
import { GiteaError } from "../controller/gitea.ts";
import {
  createRecordedLogger,
  GATE,
  JOB_ID,
  sampleInfo,
  setupFacade,
  TRUST_DOMAIN,
} from "../tests/support/facade_setup.ts";
import { issueSvid } from "../tests/support/svids.ts";
import { add } from "../tests/fakes/gitea_port.ts";
import { readPeer } from "./access.ts";
import { codeOf, rows, state } from "../tests/support/facade_calls.ts";
import { eventually } from "../tests/support/eventually.ts";
import { sampleTask } from "../tests/support/tasks.ts";

const OTHER_GATE = "f".repeat(32);

Deno.test("createFacade() lets in exactly the peers with one SPIFFE ID of the trust domain", async () => {
  const logger = createRecordedLogger();
  await using given = await setupFacade({ deps: { logger } });
  const { info, svid } = await given.executor();
  const headers = given.headersOf(info);
  const other = await createAuthority(TRUST_DOMAIN, Date.now());
  const cases: [
    string,
    Awaited<ReturnType<typeof issueSvid>> | null,
    Code | "ok" | "no connection",
  ][] = [
    ["its own SVID", svid, "ok"],
    ["no certificate", null, "no connection"],
    ["another CA", await issueSvid(other, [JOB_ID]), "no connection"],
    ["no name", await issueSvid(given.authority, []), Code.PermissionDenied],
    ["two names", await issueSvid(given.authority, [JOB_ID, `${JOB_ID}2`]), Code.PermissionDenied],
    [
      "other scheme",
      await issueSvid(given.authority, ["https://test.example/ci"]),
      Code.PermissionDenied,
    ],
    [
      "other trust domain",
      await issueSvid(given.authority, ["spiffe://other.example/ci/acme/app/build"]),
      Code.PermissionDenied,
    ],
    [
      "another job's SVID",
      await issueSvid(given.authority, [`spiffe://${TRUST_DOMAIN}/ci/acme/app/deploy`]),
      Code.PermissionDenied,
    ],
  ];
  for (const [name, peer, expected] of cases) {
    for (const http2 of [false, true]) {
      const client = given.runner(peer, headers, http2);
      assert.equal(await codeOf(client.fetchTask({})), expected, `${name}, http2 ${http2}`);
    }
  }
  assert.ok(logger.records.some((r) => r.includes("2 URI names")), "the reason is in our log");
});

Deno.test("createFacade() fails closed when TLS gives no or damaged peer data", async () => {
  const odd = [undefined, new Uint8Array(), new Uint8Array([0x30, 0x03, 1, 2])];
  for (const data of odd) {
    let tested = false;
    // The self test needs the truth, otherwise the facade would not start at all.
    await using given = await setupFacade({
      deps: { readPeer: (request) => tested ? data : readPeer(request) },
    });
    tested = true;
    const { info, client, svid } = await given.executor();
    assert.equal(await codeOf(client.fetchTask({})), Code.PermissionDenied);
    assert.equal(await codeOf(client.ping({ data: "x" })), Code.PermissionDenied);
    const beat = await given.fetchAs(svid)(`${given.url}/executor/v1/heartbeat`, {
      method: "POST",
      headers: given.headersOf(info),
      body: "{}",
    });
    await beat.body?.cancel();
    assert.equal(beat.status, 403);
  }
});

Deno.test("createFacade() refuses to start when the runtime shows no peer certificate", async () => {
  await assert.rejects(
    setupFacade({ deps: { readPeer: () => undefined } }),
    /Self test of the facade over HTTP\/2: it did not see our certificate \(status 403\)/,
  );
});

Deno.test("createFacade() needs the assignment's own capability besides the SPIFFE ID", async () => {
  await using given = await setupFacade();
  const { info, svid } = await given.executor(11n);
  await given.executor(12n);
  const good = given.headersOf(info);
  const cases: [string, Record<string, string>, Code | "ok"][] = [
    ["none", {}, Code.PermissionDenied],
    ["another assignment's", {
      ...good,
      "x-runner-token": given.capabilities.issue("gitea-task-12"),
    }, Code.PermissionDenied],
    ["no assignment", { ...good, "x-runner-uuid": "gitea-task-011" }, Code.PermissionDenied],
    ["no gate", { ...good, "x-gate-instance": "me" }, Code.PermissionDenied],
    ["right", good, "ok"],
  ];
  for (const [name, headers, expected] of cases) {
    const client = given.runner(svid, headers);
    assert.equal(await codeOf(client.fetchTask({})), expected, name);
    assert.equal(await codeOf(client.declare({})), expected, name);
    assert.equal(await codeOf(client.ping({ data: "x" })), "ok", name);
  }
});

Deno.test("FetchTask hands the task to one gate only, and again to it until its first report", async () => {
  await using given = await setupFacade();
  const { info, svid, client } = await given.executor();
  const thief = given.runner(svid, given.headersOf(info, OTHER_GATE));
  assert.equal((await client.fetchTask({})).task?.id, 11n);
  assert.equal((await client.fetchTask({})).task?.id, 11n, "the answer may have been lost");
  assert.equal(await codeOf(thief.fetchTask({})), Code.PermissionDenied);
  assert.equal(await codeOf(thief.updateTask({ state: state(11n) })), Code.PermissionDenied);
  await client.updateTask({ state: state(11n) });
  assert.equal((await client.fetchTask({})).task, undefined, "it surely has it now");
  assert.deepEqual(given.events.told.slice(0, 2), [
    `claim ${info.id} ${GATE}`,
    `updated ${info.id}`,
  ]);
});

Deno.test("FetchTask waits for the offer and says none when it does not come within 4 s", async () => {
  const clock = createFakeClock(Date.now());
  await using given = await setupFacade({ deps: { clock } });
  const atRest = clock.pending;
  const ask = async (taskId: bigint) => {
    const headers = given.headersOf(sampleInfo(taskId));
    const asked = given.runner(await issueSvid(given.authority, [JOB_ID]), headers).fetchTask({});
    await eventually(() => clock.pending > atRest, { what: "the held call" });
    return { asked };
  };
  const offered = await ask(21n);
  given.facade.offers.offer(sampleInfo(21n), sampleTask({ id: 21n }));
  assert.equal((await offered.asked).task?.id, 21n);
  await eventually(() => clock.pending === atRest, { what: "the end of the call" });
  const none = await ask(22n);
  await clock.advance(4_000);
  assert.equal((await none.asked).task, undefined);
});

Deno.test("FetchTask answers none while the controller says wait and refuses when it says never", async () => {
  await using given = await setupFacade();
  const { client } = await given.executor();
  given.events.answer = () => Promise.resolve({ kind: "wait" });
  assert.equal((await client.fetchTask({})).task, undefined);
  given.events.answer = () => Promise.resolve({ kind: "refused", why: "it has ended" });
  assert.equal(await codeOf(client.fetchTask({})), Code.PermissionDenied);
  given.events.answer = () => Promise.reject(new Error("broken"));
  assert.equal(await codeOf(client.fetchTask({})), Code.Unavailable);
});

Deno.test("Register is refused; Declare is answered here with Gitea's header", async () => {
  await using given = await setupFacade();
  const { info, client } = await given.executor();
  assert.equal(await codeOf(client.register({})), Code.PermissionDenied);
  let header: string | null = "unset";
  const declare = () =>
    client.declare({ version: "v1", labels: ["self-hosted"] }, {
      onHeader: (headers) => header = headers.get("X-Gitea-Actions-Capabilities"),
    });
  assert.equal((await declare()).runner?.uuid, info.id);
  assert.equal(header, null);
  given.facade.setDeclared("job-summary");
  assert.deepEqual((await declare()).runner?.labels, ["self-hosted"]);
  assert.equal(header, "job-summary");
});

Deno.test("reports reach only the caller's own task", async () => {
  await using given = await setupFacade();
  const { client } = await given.executor(11n);
  await given.executor(12n);
  assert.equal(await codeOf(client.updateLog({ taskId: 11n })), Code.PermissionDenied, "unclaimed");
  await client.fetchTask({});
  assert.equal(await codeOf(client.updateTask({ state: state(12n) })), Code.PermissionDenied);
  assert.equal(
    await codeOf(client.updateLog({ taskId: 12n, rows: rows("x") })),
    Code.PermissionDenied,
  );
  assert.equal(await codeOf(client.updateTask({})), Code.InvalidArgument);
  await client.updateLog({ taskId: 11n, index: 0n, rows: rows("hello") });
  assert.deepEqual(given.gitea.tasks.get(11n)?.rows, ["hello"]);
  assert.deepEqual(given.gitea.tasks.get(12n)?.rows, []);
});

Deno.test("our trouble and Gitea's is unavailable; unauthenticated never leaves", async () => {
  await using given = await setupFacade();
  const { client } = await given.executor();
  await client.fetchTask({});
  for (const code of ["unavailable", "internal", "unauthenticated", "not_gitea"] as const) {
    given.gitea.down = new GiteaError(code, "Call Gitea: no");
    assert.equal(await codeOf(client.updateTask({ state: state(11n) })), Code.Unavailable, code);
    assert.equal(
      await codeOf(client.updateLog({ taskId: 11n, rows: rows("x") })),
      Code.Unavailable,
    );
  }
  given.gitea.down = null;
  given.gitea.updateTask = () => Promise.reject(new ConnectError("no", Code.Unauthenticated));
  assert.equal(await codeOf(client.updateTask({ state: state(11n) })), Code.Unavailable);
  given.gitea.updateTask = () => Promise.reject(new TypeError("bug"));
  assert.equal(await codeOf(client.updateTask({ state: state(11n) })), Code.Unavailable);
});

Deno.test("an assignment nobody knows is unavailable during recovery and refused afterwards", async () => {
  await using given = await setupFacade();
  const info = sampleInfo(31n);
  const client = given.runner(await issueSvid(given.authority, [JOB_ID]), given.headersOf(info));
  assert.equal(await codeOf(client.updateTask({ state: state(31n) })), Code.Unavailable);
  given.facade.offers.complete();
  assert.equal(await codeOf(client.updateTask({ state: state(31n) })), Code.PermissionDenied);
});

Deno.test("the certificate rotates under a live connection, which stays", async () => {
  await using given = await setupFacade();
  const { client, svid, info } = await given.executor();
  await client.fetchTask({});
  const sent = given.facade.status().connections;
  for (let i = 0; i < 3; i++) {
    const next = await issueSvid(given.authority, [`spiffe://${TRUST_DOMAIN}/controller`]);
    given.svids.rotate(next);
    await client.updateTask({ state: state(11n) });
    assert.equal(given.facade.status().connections, sent, "the same connection");
    assert.equal(given.facade.status().certificateExpiresAt, next.expiresAt);
    const fresh = given.runner(svid, given.headersOf(info));
    assert.equal(await codeOf(fresh.ping({ data: "x" })), "ok");
    assert.equal(await codeOf(given.runner(null, {}).ping({ data: "x" })), "no connection");
    given.closeNewest(2);
  }
});

Deno.test("createFacade() serves an SVID that comes while it begins to listen", async () => {
  const authority = await createAuthority(TRUST_DOMAIN, Date.now());
  const id = `spiffe://${TRUST_DOMAIN}/controller`;
  const first = await issueSvid(authority, [id]);
  const next = { ...await issueSvid(authority, [id]), expiresAt: first.expiresAt + 1_000 };
  let current = first;
  const listeners = new Set<(svid: Svid) => void>();
  const svids: SvidSource = {
    current: () => current,
    ready() {
      const rotate = async () => {
        // Whoever waits for the first goes on before this, and then for the socket, which takes longer.
        for (let turns = 0; turns < 20; turns++) await Promise.resolve();
        current = next;
        for (const listener of listeners) listener(next);
      };
      void rotate();
      return Promise.resolve(first);
    },
    subscribe(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    status: () => ({ state: "live", since: 0, lastError: null }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  await using given = await setupFacade({ deps: { svids } });
  assert.equal(given.facade.status().certificateExpiresAt, next.expiresAt);
});

Deno.test("an SVID that expires under a live connection is worth nothing, and the connection ends", async () => {
  let ahead = 0;
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  await using given = await setupFacade({ deps: { clock } });
  const { info, svid } = await given.executor();
  for (const http2 of [false, true]) {
    ahead = 0;
    const client = given.runner(svid, given.headersOf(info), http2);
    assert.equal(await codeOf(client.fetchTask({})), "ok");
    ahead = 3_601_000;
    // Not a refusal: the gate goes on with a new one.
    assert.equal(await codeOf(client.fetchTask({})), Code.Unavailable);
    assert.equal(await codeOf(client.ping({ data: "x" })), Code.Unavailable);
    const beat = await given.fetchAs(svid, http2)(`${given.url}/executor/v1/heartbeat`, {
      method: "POST",
      headers: given.headersOf(info),
      body: "{}",
    });
    await beat.body?.cancel();
    assert.equal(beat.status, 503);
    await eventually(() => given.facade.status().connections === 0, { what: "no connection" });
  }
});

Deno.test("the bundle rotates: peers of the new CA are let in, those of the old one no longer", async () => {
  await using given = await setupFacade();
  const { info } = await given.executor();
  const next = await createAuthority(TRUST_DOMAIN, Date.now());
  const own = await issueSvid(given.authority, [`spiffe://${TRUST_DOMAIN}/controller`]);
  const bundlePem = (await issueSvid(next, [JOB_ID])).bundlePem;
  given.svids.rotate({ ...own, bundlePem });
  const fresh = given.runner(await issueSvid(next, [JOB_ID]), given.headersOf(info));
  assert.equal(await codeOf(fresh.declare({})), "ok");
  const old = given.runner(await issueSvid(given.authority, [JOB_ID]), given.headersOf(info));
  assert.equal(await codeOf(old.declare({})), "no connection");
});

Deno.test("the gate's calls reach the controller and the relay", async () => {
  await using given = await setupFacade();
  const { info, svid, client } = await given.executor();
  const as = given.fetchAs(svid);
  const post = async (name: string, body: string, headers = given.headersOf(info)) => {
    const answer = await as(`${given.url}/executor/v1/${name}`, { method: "POST", headers, body });
    const text = await answer.text();
    return text === "" ? answer.status : JSON.parse(text).status;
  };
  assert.equal(await post("heartbeat", `{"holdsTask":false}`), 204);
  await client.fetchTask({});
  assert.equal(await post("heartbeat", `{"holdsTask":true}`), 204);
  assert.equal(await post("terminating", `{"why":"node\\nshutdown"}`), 204);
  await client.updateLog({ taskId: 11n, rows: rows("working"), noMore: true });
  await client.updateTask({ state: state(11n, Result.SUCCESS) });
  assert.equal(await post("exit", `{"delivered":true,"code":0,"detail":""}`), 204);
  assert.equal(given.gitea.tasks.get(11n)?.result, Result.FAILURE);
  assert.match(given.gitea.tasks.get(11n)?.rows.at(-1) ?? "", /interrupted: node shutdown/);
  const told = given.events.told.filter((t) => /heartbeat|terminating|exited/.test(t));
  assert.deepEqual(told, [
    `heartbeat ${info.id} false`,
    `heartbeat ${info.id} true`,
    `terminating ${info.id} node shutdown`,
    `exited ${info.id} true 0`,
  ]);
  assert.equal(await post("terminating", `{"why":"SIGTERM"}`), 204);
  assert.ok(!given.events.told.some((t) => t.includes("SIGTERM")), "the job is over");
  assert.equal(await post("exit", `{"code":"0"}`), 400);
  assert.equal(await post("exit", `{"code":1e300}`), 400);
  assert.equal(await post("exit", `[]`), 400);
  assert.equal(await post("exit", "x".repeat(20_000)), 413);
  assert.equal(await post("other", "{}"), 404);
  assert.equal(await post("heartbeat", "{}", given.headersOf(info, OTHER_GATE)), 403);
});

Deno.test("the log is sealed after the exit although Gitea is away at that moment", async () => {
  await using given = await setupFacade();
  const { info, svid, client } = await given.executor();
  await client.fetchTask({});
  await client.updateLog({ taskId: 11n, rows: rows("working") });
  await client.updateTask({ state: state(11n, Result.SUCCESS) });
  given.gitea.down = new GiteaError("unavailable", "Call Gitea: refused");
  const exit = await given.fetchAs(svid)(`${given.url}/executor/v1/exit`, {
    method: "POST",
    headers: given.headersOf(info),
    body: `{"delivered":true,"code":0,"detail":""}`,
  });
  assert.equal(exit.status, 204);
  given.gitea.down = null;
  await eventually(() => given.gitea.tasks.get(11n)?.sealed, { what: "the seal" });
});

Deno.test("late log rows are forwarded after the assignment was taken back, states are not", async () => {
  await using given = await setupFacade();
  const { info, client } = await given.executor();
  await client.fetchTask({});
  await client.updateTask({ state: state(11n) });
  given.facade.offers.remove(info.id);
  await client.updateLog({ taskId: 11n, index: 0n, rows: rows("late") });
  assert.deepEqual(given.gitea.tasks.get(11n)?.rows, ["late"]);
  assert.equal(await codeOf(client.updateTask({ state: state(11n) })), Code.PermissionDenied);
  assert.equal(await codeOf(client.fetchTask({})), Code.PermissionDenied);
});

Deno.test("FetchTask says where the log begins, also when it is asked again", async () => {
  await using given = await setupFacade();
  const { info, svid } = await given.executor();
  given.events.answer = () => Promise.resolve({ kind: "granted", logOffset: 3 });
  const body = toBinary(FetchTaskRequestSchema, create(FetchTaskRequestSchema));
  const fetchTask = async () => {
    const answer = await given.fetchAs(svid)(
      `${given.url}/api/actions/runner.v1.RunnerService/FetchTask`,
      {
        method: "POST",
        headers: { ...given.headersOf(info), "content-type": "application/proto" },
        body: body.slice(),
      },
    );
    await answer.body?.cancel();
    return answer.headers.get("x-log-offset");
  };
  assert.equal(await fetchTask(), "3");
  assert.equal(await fetchTask(), "3");
  await given.runner(svid, given.headersOf(info)).updateTask({ state: state(11n) });
  assert.equal(await fetchTask(), null);
});

Deno.test("what an executor without record says of itself reaches the controller, and nothing else does", async () => {
  await using given = await setupFacade();
  const info = sampleInfo(41n);
  given.facade.offers.expectProof(info);
  given.facade.offers.complete();
  const svid = await issueSvid(given.authority, [JOB_ID]);
  const post = async (name: string, body: string, as = svid, headers = given.headersOf(info)) => {
    const answer = await given.fetchAs(as)(`${given.url}/executor/v1/${name}`, {
      method: "POST",
      headers,
      body,
    });
    await answer.body?.cancel();
    return answer.status;
  };
  const other = await issueSvid(given.authority, [`${JOB_ID}2`]);
  assert.equal(await post("heartbeat", `{"holdsTask":true,"logOffset":2}`, other), 403);
  const stranger = given.headersOf(sampleInfo(42n));
  const borrowed = { ...stranger, "x-runner-uuid": info.id };
  assert.equal(await post("heartbeat", `{"logOffset":2}`, svid, borrowed), 403, "no capability");
  for (const offset of ["-1", "0.5", "1e300"]) {
    assert.equal(await post("heartbeat", `{"holdsTask":true,"logOffset":${offset}}`), 400);
  }
  assert.equal(await post("terminating", `{"why":"x"}`), 503);
  assert.equal(await post("exit", `{"delivered":false,"code":15}`), 503);
  const client = given.runner(svid, given.headersOf(info));
  assert.equal(await codeOf(client.updateTask({ state: state(41n) })), Code.Unavailable);
  assert.equal(await codeOf(client.updateLog({ taskId: 41n })), Code.Unavailable);
  assert.equal(await post("heartbeat", `{"holdsTask":false}`), 204);
  assert.deepEqual(given.events.told, [], "it has shown nothing yet");

  assert.equal(await post("heartbeat", `{"holdsTask":false,"logOffset":0}`), 204);
  assert.equal(await post("heartbeat", `{"holdsTask":true}`), 204);
  const fetching = client.fetchTask({});
  await eventually(() => given.events.told.length === 3, { what: "the question for the task" });
  given.facade.offers.offer(info, sampleTask({ id: 41n }));
  assert.equal((await fetching).task?.id, 41n);
  assert.deepEqual(given.events.told.slice(0, 3), [
    `shown ${info.id} ${GATE} {"kind":"holds","logOffset":0}`,
    `shown ${info.id} ${GATE} {"kind":"holds_somewhere"}`,
    `shown ${info.id} ${GATE} {"kind":"asks"}`,
  ]);
});

Deno.test("a claimed assignment that was recovered takes reports of its own gate only", async () => {
  await using given = await setupFacade();
  const info = sampleInfo(41n);
  const svid = await issueSvid(given.authority, [JOB_ID]);
  given.gitea.tasks.set(41n, { ...add(), rows: ["waiting", "waiting"] });
  given.facade.offers.recoverClaimed(info, {
    claim: { executor: executorName(await instanceOf("uuid", "ns"), info.id), gate: GATE, at: 1 },
    logOffset: 2,
    steps: [],
    task: null,
  });
  const client = given.runner(svid, given.headersOf(info));
  const answer = await client.updateLog({ taskId: 41n, index: 0n, rows: rows("first") });
  assert.equal(answer.ackIndex, 1n);
  assert.deepEqual(given.gitea.tasks.get(41n)?.rows, ["waiting", "waiting", "first"]);
  assert.equal((await client.fetchTask({})).task, undefined);
  const thief = given.runner(svid, given.headersOf(info, OTHER_GATE));
  assert.equal(await codeOf(thief.updateTask({ state: state(41n) })), Code.PermissionDenied);
});
