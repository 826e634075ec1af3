import assert from "node:assert/strict";
import { ClusterError, type ClusterErrorCode } from "../../backends/pod/cluster.ts";
import { systemClock } from "../../lib/clock.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { status } from "../../tests/fakes/api_server.ts";
import { startApiEndpoint } from "../../tests/support/api_endpoint.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { createKubernetes } from "./client.ts";
import { createExecutorCluster } from "./executor_cluster.ts";

const call = { signal: new AbortController().signal };

async function setup(options: { readonly port?: number } = {}) {
  await using stack = new AsyncDisposableStack();
  const api = stack.use(await startApiEndpoint());
  const kubernetes = stack.use(
    await createKubernetes({ ...api.access, ...options }, { clock: systemClock }),
  );
  const cluster = createExecutorCluster(kubernetes, { namespace: "n", clock: systemClock });
  const moved = stack.move();
  return {
    api,
    cluster,
    /** The next answers. */
    refuse: (code: number, reason: string, message: string) =>
      api.answer(() => Response.json(status(code, reason, message), { status: code })),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

async function codeOf(attempt: Promise<unknown>): Promise<ClusterError> {
  const error = await attempt.then(() => undefined, (error) => error);
  assert.ok(error instanceof ClusterError, `no ClusterError: ${error}`);
  return error;
}

const refusals: readonly (readonly [number, string, ClusterErrorCode])[] = [
  [400, "BadRequest", "invalid"],
  [401, "Unauthorized", "unauthorized"],
  [403, "Forbidden", "forbidden"],
  [404, "NotFound", "not_found"],
  [409, "AlreadyExists", "already_exists"],
  [409, "Conflict", "conflict"],
  [422, "Invalid", "invalid"],
  [429, "TooManyRequests", "throttled"],
  [500, "InternalError", "unknown_outcome"],
  [503, "ServiceUnavailable", "unknown_outcome"],
  [504, "Timeout", "unknown_outcome"],
];
for (const [answered, reason, code] of refusals) {
  Deno.test(`createPod() makes ${code} of ${answered} ${reason}, in the server's words`, async () => {
    await using world = await setup();
    world.refuse(answered, reason, 'pods "x" are not wanted');
    const error = await codeOf(world.cluster.createPod({ metadata: { name: "x" } }, call));
    assert.equal(error.code, code);
    const words = `the API server answered ${answered} ${reason}: pods "x" are not wanted`;
    assert.ok(error.message.startsWith(words), error.message);
  });
}

Deno.test("createPod() is of unknown outcome when the server is not there, and says so", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  await using world = await setup({ port });
  const error = await codeOf(world.cluster.createPod({ metadata: { name: "x" } }, call));
  assert.equal(error.code, "unknown_outcome");
  assert.match(error.message, /^connection refused: check the API server's address/);
});

Deno.test("createPod() sends the manifest whole, into the namespace, to be checked strictly", async () => {
  await using world = await setup();
  world.api.answer(() => Response.json({ metadata: { name: "x", uid: "u" } }, { status: 201 }));
  const manifest = { kind: "Pod", metadata: { name: "x" }, spec: { fieldOfTomorrow: { a: 1 } } };
  assert.equal((await world.cluster.createPod(manifest, call)).uid, "u");
  const [asked] = world.api.asked;
  assert.equal(`${asked?.method} ${asked?.path}`, "POST /api/v1/namespaces/n/pods");
  assert.equal(asked?.query.get("fieldValidation"), "Strict");
  assert.deepEqual(JSON.parse(asked?.body ?? ""), {
    ...manifest,
    metadata: { name: "x", namespace: "n" },
  });
});

Deno.test("deletePod() sends UID and grace period in the body alone", async () => {
  await using world = await setup();
  const metadata = { name: "x", uid: "u", deletionTimestamp: "2026-01-02T03:04:05Z" };
  world.api.answer(() => Response.json({ metadata }));
  const left = await world.cluster.deletePod({ name: "x", uid: "u", graceSeconds: 0 }, call);
  assert.deepEqual(left?.deletion, { graceSeconds: 0 });
  await world.cluster.deletePod({ name: "x", uid: "u", graceSeconds: null }, call);
  assert.deepEqual(
    world.api.asked.map(({ method, query, body }) => [method, [...query], JSON.parse(body)]),
    [
      ["DELETE", [], { preconditions: { uid: "u" }, gracePeriodSeconds: 0 }],
      ["DELETE", [], { preconditions: { uid: "u" } }],
    ],
  );
});

Deno.test("labelPod() patches by merge, and a UID that cannot be changed is a conflict", async () => {
  await using world = await setup();
  const labels = { "ci.example.org/terminal": "true" };
  world.api.answer(() => Response.json({ metadata: { name: "x", uid: "u" } }));
  await world.cluster.labelPod({ name: "x", uid: "u", labels }, call);
  const [asked] = world.api.asked;
  assert.equal(asked?.headers.get("content-type"), "application/merge-patch+json");
  assert.deepEqual(JSON.parse(asked?.body ?? ""), { metadata: { uid: "u", labels } });
  world.refuse(
    422,
    "Invalid",
    'Pod "x" is invalid: metadata.uid: Invalid value: "u": field is immutable',
  );
  const error = await codeOf(world.cluster.labelPod({ name: "x", uid: "u", labels }, call));
  assert.equal(error.code, "conflict");
});

Deno.test("getPod(), getEntry() and nodeUid() are undefined for what is not there", async () => {
  await using world = await setup();
  world.refuse(404, "NotFound", "not found");
  assert.equal(await world.cluster.getPod("x", call), undefined);
  assert.equal(await world.cluster.getEntry("x", call), undefined);
  assert.equal(await world.cluster.nodeUid("x", call), undefined);
});

Deno.test("listEntries() reads whatever form entries have", async () => {
  await using world = await setup();
  const items = [
    {
      metadata: { name: "a", uid: "u", labels: { l: "v" } },
      spec: { spiffeID: "spiffe://x/y", selectors: ["k8s:pod-uid:1", 7], admin: true },
      status: { rendered: true, masked: false, set: false },
    },
    { metadata: { name: "b" }, spec: "odd" },
  ];
  world.api.answer(() => Response.json({ metadata: { resourceVersion: "1" }, items }));
  assert.deepEqual(await world.cluster.listEntries({ l: "v", m: "w" }, call), [
    {
      name: "a",
      uid: "u",
      labels: { l: "v" },
      spec: { spiffeID: "spiffe://x/y", selectors: ["k8s:pod-uid:1"] },
      rendered: true,
      masked: false,
    },
    { name: "b", uid: "", labels: {}, spec: { selectors: [] }, rendered: false, masked: false },
  ]);
  assert.equal(world.api.asked[0]?.query.get("labelSelector"), "l=v,m=w");
});

Deno.test("listPods() and watchPods() together list once a second", async () => {
  await using api = await startApiEndpoint();
  await using kubernetes = await createKubernetes(api.access, { clock: systemClock });
  const clock = createFakeClock();
  const cluster = createExecutorCluster(kubernetes, {
    ...{ namespace: "n", clock },
    listSpacingMs: 1_000,
  });
  api.answer(() => Response.json({ metadata: { resourceVersion: "1" }, items: [] }));
  await cluster.listPods({}, call);
  const stop = new AbortController();
  const watch = cluster.watchPods({}, stop)[Symbol.asyncIterator]();
  const watched = watch.next();
  await eventually(() => clock.pending === 1, { what: "the watch to wait", timeoutMs: 5_000 });
  const listed = cluster.listPods({}, call);
  await cluster.listEntries({}, call); // Of another kind.
  await clock.advance(999);
  assert.equal(api.asked.length, 2);
  await clock.advance(1);
  assert.deepEqual((await watched).value, { kind: "all", pods: [] });
  assert.equal(api.asked.length, 3);
  await clock.advance(1_000);
  await listed;
  assert.equal(api.asked.length, 4);
  stop.abort();
  await watch.return?.();
});

Deno.test("emitPodEvent() writes an event that kubectl finds by the Pod's UID", async () => {
  await using world = await setup();
  world.api.answer(() => Response.json({}, { status: 201 }));
  const event = { type: "Warning", reason: "ExecutorLost", message: "was lost" } as const;
  await world.cluster.emitPodEvent({ name: "x", uid: "u" }, event, call);
  const { firstTimestamp, lastTimestamp, ...body } = JSON.parse(world.api.asked[0]?.body ?? "");
  assert.equal(firstTimestamp, lastTimestamp);
  assert.deepEqual(body, {
    metadata: { generateName: "x.", namespace: "n" },
    involvedObject: { apiVersion: "v1", kind: "Pod", name: "x", namespace: "n", uid: "u" },
    ...event,
    source: { component: "gitea-dynamic-runner" },
    reportingComponent: "gitea-dynamic-runner",
    reportingInstance: "gitea-dynamic-runner",
    count: 1,
  });
});
