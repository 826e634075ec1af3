import assert from "node:assert/strict";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { systemClock } from "../../lib/clock.ts";
import { type Answerer, startApiEndpoint } from "../../tests/support/api_endpoint.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { status } from "../../tests/fakes/api_server.ts";
import { createKubernetes, type Kubernetes } from "./client.ts";
import { hasReason, isNotFound, KubernetesError } from "./error.ts";

const { signal } = new AbortController();
const pod = { namespace: "n", name: "x" };
const read = (kubernetes: Kubernetes, options: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
  kubernetes.call('Read Pod "x"', (o) => kubernetes.core.readNamespacedPod(pod, o), {
    signal,
    ...options,
  });
const refusal = (code: number, reason: string, message: string): Answerer => () =>
  Response.json(status(code, reason, message), { status: code });
const failureOf = async (promise: Promise<unknown>): Promise<KubernetesError> => {
  const error = await promise.then(() => undefined, (error) => error);
  assert.ok(error instanceof KubernetesError, `no KubernetesError: ${error}`);
  return error;
};
/** Answers only when released, or when the test ends. */
function gate() {
  const opened = Promise.withResolvers<void>();
  const answer: Answerer = async () => {
    await opened.promise;
    return Response.json({});
  };
  return { answer, open: opened.resolve, [Symbol.dispose]: () => opened.resolve() };
}

/** Opens three connections by three calls at once; resolves to them. */
async function threeConnections(
  api: Awaited<ReturnType<typeof startApiEndpoint>>,
  kubernetes: Kubernetes,
): Promise<Set<number>> {
  using together = gate();
  api.answer(together.answer);
  const calls = [read(kubernetes), read(kubernetes), read(kubernetes)];
  await eventually(() => api.asked.length === 3, { what: "three connections" });
  together.open();
  await Promise.all(calls);
  return new Set(api.asked.map(({ connection }) => connection));
}

Deno.test("call() sends token and user agent, and reads what comes as the generated class", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, {
    clock: systemClock,
    userAgent: "ours/1",
  });
  api.answer(() => Response.json({ metadata: { creationTimestamp: "2026-01-02T03:04:05Z" } }));
  const { metadata } = await read(kubernetes);
  assert.equal(metadata?.creationTimestamp?.getTime(), Date.UTC(2026, 0, 2, 3, 4, 5));
  const [asked] = api.asked;
  assert.equal(asked?.path, "/api/v1/namespaces/n/pods/x");
  assert.equal(asked?.headers.get("authorization"), "Bearer token-1");
  assert.equal(asked?.headers.get("user-agent"), "ours/1");
  assert.equal(kubernetes.status().state, "up");
});

Deno.test("call() keeps to one connection for calls in a row, and to maxCalls at a time", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock, maxCalls: 3 });
  for (let i = 0; i < 30; i++) await read(kubernetes);
  assert.equal(new Set(api.asked.map(({ connection }) => connection)).size, 1);
  let now = 0;
  let most = 0;
  api.answer(async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 1));
    now -= 1;
    return Response.json({});
  });
  await Promise.all(Array.from({ length: 30 }, () => read(kubernetes)));
  assert.equal(most, 3);
  assert.ok(new Set(api.asked.map(({ connection }) => connection)).size <= 4);
});

Deno.test("call() tells AlreadyExists from Conflict, and both from NotFound", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  api.answer(refusal(409, "AlreadyExists", 'pods "x" already exists'));
  const exists = await failureOf(read(kubernetes));
  assert.equal(
    exists.message,
    'Read Pod "x": the API server answered 409 AlreadyExists: pods "x" already exists',
  );
  assert.equal(exists.status, 409);
  assert.equal(exists.retryable, false);
  assert.deepEqual(["AlreadyExists", "Conflict"].map((reason) => hasReason(exists, reason)), [
    true,
    false,
  ]);
  api.answer(refusal(409, "Conflict", "the object has been modified"));
  assert.ok(hasReason(await failureOf(read(kubernetes)), "Conflict"));
  api.answer(() => new Response("404 page not found", { status: 404 }));
  const missing = await failureOf(read(kubernetes));
  assert.ok(isNotFound(missing));
  assert.equal(missing.reason, "NotFound");
  assert.equal(kubernetes.status().state, "up");
});

Deno.test("call() says what to do about missing rights, but not about a quota", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  const rights = 'pods is forbidden: User "u" cannot create resource "pods" in API group ""';
  api.answer(refusal(403, "Forbidden", rights));
  assert.match(
    (await failureOf(read(kubernetes))).message,
    /: give the service account this right/,
  );
  api.answer(refusal(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q'));
  const quota = await failureOf(read(kubernetes));
  assert.equal(quota.detail, 'pods "x" is forbidden: exceeded quota: q');
  assert.ok(quota.message.endsWith(quota.detail));
});

Deno.test("call() passes on how long the server wants us to wait", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  api.answer(() =>
    Response.json(status(429, "TooManyRequests", "slow down"), {
      status: 429,
      headers: { "retry-after": "3" },
    })
  );
  const busy = await failureOf(read(kubernetes));
  assert.equal(busy.retryAfterMs, 3_000);
  assert.equal(busy.retryable, true);
  api.answer(() =>
    Response.json({ ...status(504, "Timeout", "x"), details: { retryAfterSeconds: 999_999 } }, {
      status: 504,
    })
  );
  assert.equal((await failureOf(read(kubernetes))).retryAfterMs, 60_000);
});

Deno.test("call() tells a missed deadline from the caller's abort", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  using silent = gate();
  api.answer(silent.answer);
  const late = failureOf(read(kubernetes, { timeoutMs: 5_000 }));
  await eventually(() => api.asked.length === 1, { what: "the first request" });
  await clock.advance(5_000);
  const { reason, message, status } = await late;
  assert.deepEqual({ reason, status }, { reason: "Deadline", status: 0 });
  assert.equal(message, 'Read Pod "x": no answer within 5 s');
  assert.equal(kubernetes.status().state, "down");

  const stop = new AbortController();
  const stopped = read(kubernetes, { signal: stop.signal });
  await eventually(() => api.asked.length === 2, { what: "the second request" });
  const why = new Error("not wanted any more");
  stop.abort(why);
  await assert.rejects(stopped, (error) => error === why);
  await assert.rejects(read(kubernetes, { signal: stop.signal }), (error) => error === why);
});

Deno.test("call() does not use connections beside one that was silent again", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  const old = await threeConnections(api, kubernetes);
  assert.equal(old.size, 3);
  using silent = gate();
  api.answer(silent.answer);
  const late = failureOf(read(kubernetes));
  await eventually(() => api.asked.length === 4, { what: "the request without answer" });
  assert.ok(old.has(api.asked.at(-1)?.connection ?? 0));
  await clock.advance(10_000);
  await late;
  api.answer(() => Response.json({}));
  await read(kubernetes);
  assert.equal(old.has(api.asked.at(-1)?.connection ?? 0), false);
});

Deno.test("call() asks whether it may act after its turn came, before anything but a GET", async () => {
  await using api = await startApiEndpoint();
  let leads = true;
  let asked = 0;
  const fenced = new Error("does not lead");
  await using kubernetes = await createKubernetes(api.access, {
    clock: systemClock,
    maxCalls: 1,
    before() {
      asked += 1;
      if (!leads) throw fenced;
    },
  });
  const remove = () =>
    kubernetes.call("Delete", (o) => kubernetes.core.deleteNamespacedPod(pod, o), { signal });
  await remove();
  assert.equal(asked, 1);
  {
    using slow = gate();
    api.answer(slow.answer);
    const first = read(kubernetes);
    await eventually(() => api.asked.length === 2, { what: "the call that holds the turn" });
    const waiting = [
      remove(),
      kubernetes.request("Make", { method: "POST", path: "/x", body: {} }, { signal }),
    ].map((effect) => effect.then(() => assert.fail("it was sent"), (error) => error));
    leads = false; // While both wait.
    slow.open();
    await first;
    assert.deepEqual(await Promise.all(waiting), [fenced, fenced]);
  }
  assert.equal(api.asked.length, 2);
  await read(kubernetes);
  assert.equal(asked, 3, "reads are not asked about");
  assert.equal(kubernetes.status().state, "up");
});

Deno.test("call() asks anew whether it may act when a refused request is repeated", async () => {
  await using api = await startApiEndpoint();
  let leads = true;
  await using kubernetes = await createKubernetes(api.access, {
    clock: systemClock,
    before() {
      if (!leads) throw new Error("does not lead");
    },
  });
  await api.mount({ token: "token-2" });
  api.answer(() => {
    leads = false;
    return Response.json(status(401, "Unauthorized", "Unauthorized"), { status: 401 });
  });
  await assert.rejects(
    kubernetes.request("Make", { method: "POST", path: "/x", body: {} }, { signal }),
    /does not lead/,
  );
  assert.equal(api.asked.length, 1);
});

Deno.test("call() keeps its connections when a caller's own time is over", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  const old = await threeConnections(api, kubernetes);
  using slow = gate();
  api.answer(slow.answer);
  using patience = clock.timeout(1_000);
  const late = read(kubernetes, { signal: patience.signal })
    .then(() => assert.fail("it was answered"), (error) => error);
  await eventually(() => api.asked.length === 4, { what: "the slow request" });
  await clock.advance(1_000);
  assert.equal(await late, patience.signal.reason);
  assert.equal(patience.signal.reason.name, "TimeoutError");
  api.answer(() => Response.json({}));
  await read(kubernetes);
  assert.ok(old.has(api.asked.at(-1)?.connection ?? 0));
});

Deno.test("call() reads a rotated token at once when it is refused, and tries once more", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  let valid = "Bearer token-2";
  api.answer(({ headers }) =>
    headers.get("authorization") === valid
      ? Response.json({})
      : Response.json(status(401, "Unauthorized", "Unauthorized"), { status: 401 })
  );
  await api.mount({ token: "token-2" });
  await read(kubernetes);
  assert.equal(api.asked.length, 2);
  valid = "Bearer token-3";
  const refused = await failureOf(read(kubernetes));
  assert.equal(refused.reason, "Unauthorized");
  assert.equal(api.asked.length, 3);
  assert.match(refused.message, /check the service account or KUBECONFIG/);
  assert.doesNotMatch(refused.message, /token-\d/);
});

Deno.test("call() takes a new token within a minute though the old one is still accepted", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  await read(kubernetes);
  await api.mount({ token: "token-2" });
  await clock.advance(59_000);
  await read(kubernetes);
  await clock.advance(1_000);
  await read(kubernetes);
  assert.deepEqual(api.asked.map(({ headers }) => headers.get("authorization")), [
    "Bearer token-1",
    "Bearer token-1",
    "Bearer token-2",
  ]);
});

Deno.test("call() trusts a new CA as soon as the old one does not do", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  await read(kubernetes);
  const ca = await api.recertify();
  const untrusted = await failureOf(read(kubernetes));
  assert.equal(untrusted.reason, "Unreachable");
  assert.match(untrusted.message, /TLS failed/);
  await api.mount({ ca });
  await eventually(() => read(kubernetes).then(() => true), { what: "trust in the new CA" });
});

Deno.test("call() goes on with what it knows while the files are missing", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  await Deno.remove(`${api.access.directory}/token`);
  await clock.advance(120_000);
  await read(kubernetes);
  assert.equal(api.asked.length, 1);
});

Deno.test("call() shows no token, though the server quotes it", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  api.answer(({ headers }) =>
    new Response(`bad request: ${headers.get("authorization")}`, { status: 400 })
  );
  const error = await failureOf(read(kubernetes));
  assert.equal(error.detail, "bad request: Bearer [secret]");
  assert.doesNotMatch(Deno.inspect(error), /token-1/);
});

Deno.test("call() does not follow a redirect with the token", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  api.answer(() => new Response(null, { status: 302, headers: { location: "/elsewhere" } }));
  assert.equal((await failureOf(read(kubernetes))).status, 302);
  assert.equal(api.asked.length, 1);
});

for (
  const [what, answer] of [
    ["a page", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
    ["broken JSON", () => new Response("{", { headers: { "content-type": "application/json" } })],
    ["more than it takes", () => {
      const chunk = new Uint8Array(2 ** 20).fill(32);
      const body = ReadableStream.from(Array.from({ length: 66 }, () => chunk));
      return new Response(body, { headers: { "content-type": "application/json" } });
    }],
  ] satisfies readonly (readonly [string, Answerer])[]
) {
  Deno.test(`call() finds no API server behind ${what}`, async () => {
    await using api = await startApiEndpoint();
    await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
    api.answer(answer);
    const error = await failureOf(read(kubernetes));
    assert.equal(error.reason, "Malformed");
    assert.equal(error.retryable, true);
  });
}

Deno.test("call() patches with the content type asked for, and deletes by options in the body", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  const { core } = kubernetes;
  const body = { metadata: { labels: { a: "b" } } };
  await kubernetes.call("Patch", (o) => core.patchNamespacedPod({ ...pod, body }, o), {
    signal,
    patch: "merge",
  });
  const options = { gracePeriodSeconds: 0, preconditions: { uid: "u" } };
  await kubernetes.call(
    "Delete",
    (o) => core.deleteNamespacedPod({ ...pod, body: options }, o),
    { signal },
  );
  const [patched, deleted] = api.asked;
  assert.equal(patched?.headers.get("content-type"), "application/merge-patch+json");
  assert.deepEqual(JSON.parse(patched?.body ?? ""), body);
  assert.deepEqual(JSON.parse(deleted?.body ?? ""), options);
});

Deno.test("call() passes on what the caller's own code throws", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  const own = new RangeError("mine");
  await assert.rejects(
    kubernetes.call("Work", () => Promise.reject(own), { signal }),
    (error) => error === own,
  );
  await assert.rejects(
    kubernetes.call("Work", () => kubernetes.core.readNamespacedPod(pod), { signal }),
    /pass the options of call\(\) to the method/,
  );
});

Deno.test("createKubernetes() ends calls and watches when it is closed", async () => {
  await using api = await startApiEndpoint();
  const kubernetes = await createKubernetes(api.access, { clock: systemClock });
  using silent = gate();
  api.answer(silent.answer);
  const call = read(kubernetes);
  const watch = kubernetes.listAndWatch({ source: "s", path: "/x", decode: () => 1 }, { signal });
  const next = watch.next();
  await eventually(() => api.asked.length === 2, { what: "both requests" });
  await kubernetes[Symbol.asyncDispose]();
  await assert.rejects(call, /client is closed/);
  assert.deepEqual(await next, { done: true, value: undefined });
  await assert.rejects(read(kubernetes), /client is closed/);
});

Deno.test("call() and listAndWatch() end by their signals after a garbage collection, too", async () => {
  await using api = await startApiEndpoint();
  const clock = createFakeClock();
  await using kubernetes = await createKubernetes(api.access, { clock });
  let streaming = 0;
  // The head and a beginning come; then nothing, and no end.
  api.answer(({ query }) => {
    if (query.has("limit")) return Response.json({ metadata: { resourceVersion: "1" }, items: [] });
    streaming += 1;
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("\n")),
      cancel: () => void streaming--,
    });
    return new Response(body, { headers: { "content-type": "application/json" } });
  });
  const stop = new AbortController();
  const target = { source: "s", path: "/x", decode: () => 1 };
  const watch = kubernetes.listAndWatch(target, { signal: stop.signal });
  await watch.next();
  const next = watch.next();
  const late = failureOf(read(kubernetes));
  await eventually(() => streaming === 2, { what: "both answers to begin" });
  const canary = new WeakRef({});
  await eventually(() => {
    Array.from({ length: 200_000 }, (_, i) => ({ i }));
    return canary.deref() === undefined;
  }, { what: "a garbage collection" });
  stop.abort();
  assert.deepEqual(await next, { done: true, value: undefined });
  await clock.advance(10_000);
  assert.equal((await late).reason, "Deadline");
  await eventually(() => streaming === 0, { what: "both connections to be given up" });
});

Deno.test("createKubernetes() refuses a folder without a token, by its path", async () => {
  const access = {
    kind: "service_account",
    host: "127.0.0.1",
    port: 1,
    directory: "/absent",
  } as const;
  await assert.rejects(
    createKubernetes(access, { clock: systemClock }),
    /Read "\/absent\/ca\.crt" for the API server: NotFound/,
  );
});

Deno.test("call() names a server that is not there", async () => {
  await using api = await startApiEndpoint();
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const access = { ...api.access, port: taken.addr.port };
  taken.close();
  await using kubernetes = await createKubernetes(access, { clock: systemClock });
  const error = await failureOf(read(kubernetes));
  assert.equal(error.reason, "Unreachable");
  assert.match(error.message, /^Read Pod "x": connection refused: check the API server's address/);
});
