/**
 * The contract of the Lease's store on a real API server, with exactly the rights of the shipped
 * manifest. Not found by `deno task test`, which needs no cluster:
 * `deno test -A tests/contract/lease_kube.ts`.
 */
import assert from "node:assert/strict";
import { createKubernetes } from "../../clients/kubernetes/client.ts";
import { createLeaseStore } from "../../clients/kubernetes/leases.ts";
import { createPodLabel } from "../../clients/kubernetes/pod_label.ts";
import { LeaseError, type LeaseRecord } from "../../controller/leadership/lease.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { call } from "../support/calls.ts";
import { LEASE, type LeaseCluster, startLeaseCluster } from "../support/lease_cluster.ts";
import { leaseContract } from "./lease_suite.ts";

let world: LeaseCluster | undefined;
Deno.test.beforeAll(async () => {
  world = await startLeaseCluster();
});
Deno.test.afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
});

async function open() {
  assert.ok(world !== undefined);
  const { peers, kubeconfig } = world;
  await peers.kube.kubectl([
    "delete",
    "lease",
    "-n",
    LEASE.namespace,
    LEASE.name,
    "--ignore-not-found",
  ]);
  await using stack = new AsyncDisposableStack();
  const connect = async () => {
    const client = stack.use(
      await createKubernetes({ kind: "kubeconfig", path: kubeconfig }, { clock: systemClock }),
    );
    return stack.use(createLeaseStore(client, { ...LEASE, logger: silentLogger }));
  };
  const [store, other] = [await connect(), await connect()];
  const owned = stack.move();
  return {
    peers,
    store,
    other,
    async delete() {
      await peers.kube.kubectl(["delete", "lease", "-n", LEASE.namespace, LEASE.name]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

leaseContract("lease at a real API server", open);

const RECORD: LeaseRecord = {
  holder: "one",
  durationSeconds: 15,
  acquireTime: "2026-11-30T01:02:03.123456Z",
  renewTime: "2026-11-30T01:02:04.654321Z",
  transitions: 3,
};

Deno.test("lease at a real API server: update() keeps labels and finalizers of others", async () => {
  await using world = await open();
  await world.store.create(RECORD, {}, call);
  const metadata = { labels: { team: "ci" }, finalizers: ["example.org/kept"] };
  const patch = JSON.stringify({ metadata });
  const name = [LEASE.name, "-n", LEASE.namespace];
  await world.peers.kube.kubectl(["patch", "lease", ...name, "--type=merge", "-p", patch]);
  try {
    const seen = await world.store.read(call) ?? assert.fail();
    await world.store.update(
      seen.version,
      { ...RECORD, holder: "two" },
      { "example.org/a": "1" },
      call,
    );
    const stored = JSON.parse(
      await world.peers.kube.kubectl(["get", "lease", ...name, "-o", "json"]),
    );
    assert.deepEqual(stored.metadata.labels, metadata.labels);
    assert.deepEqual(stored.metadata.finalizers, metadata.finalizers);
    assert.equal(stored.spec.holderIdentity, "two");
    assert.equal(stored.spec.acquireTime, RECORD.acquireTime);
  } finally {
    const none = JSON.stringify({ metadata: { finalizers: null } });
    await world.peers.kube.kubectl(["patch", "lease", ...name, "--type=merge", "-p", none]);
  }
});

Deno.test("lease at a real API server: a Lease without any field is read as nobody's", async () => {
  await using world = await open();
  await world.peers.kube.kubectl(["create"], {
    stdin: JSON.stringify({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: LEASE,
    }),
  });
  const seen = await world.store.read(call);
  assert.deepEqual(seen?.record, {
    holder: "",
    durationSeconds: null,
    acquireTime: null,
    renewTime: null,
    transitions: 0,
  });
  const written = await world.store.update(seen?.version ?? "", RECORD, {}, call);
  assert.deepEqual(written.record, RECORD);
});

Deno.test("lease at a real API server: what the server refuses is told apart, with its words", async () => {
  await using world = await open();
  const wrong = { ...RECORD, durationSeconds: -1 };
  const error = await world.store.create(wrong, {}, call).catch((error) => error);
  assert.ok(error instanceof LeaseError && error.code === "refused");
  assert.match(error.message, /^Create Lease "gitea-actions\/dynamic-runner-scheduler": .*422/);
});

Deno.test("label of a Pod at a real API server: set() puts it on, list() tells of it, set() takes it off and tells a missing Pod", async () => {
  assert.ok(world !== undefined);
  const { peers: { kube }, kubeconfig } = world;
  const { namespace } = LEASE;
  const access = { kind: "kubeconfig", path: kubeconfig } as const;
  await using client = await createKubernetes(access, { clock: systemClock });
  const place = { namespace, key: "ci.ddupan.top/leader" };
  const label = createPodLabel(client, { ...place, lease: `${namespace}/ours` });
  const other = createPodLabel(client, { ...place, lease: `${namespace}/of-another` });
  await kube.kubectl(["create"], {
    stdin: JSON.stringify({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "controller-0", namespace, labels: { app: "x" } },
      spec: {
        serviceAccountName: "controller",
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 2000,
          seccompProfile: { type: "RuntimeDefault" },
        },
        containers: [{
          name: "controller",
          image: "x",
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
        }],
      },
    }),
  });
  const labels = async () => {
    const text = await kube.kubectl(["get", "pod", "controller-0", "-n", namespace, "-o", "json"]);
    return JSON.parse(text).metadata.labels;
  };
  for (const _ of [1, 2]) {
    assert.equal(await label.set("controller-0", true, call), true);
    assert.deepEqual(await labels(), { app: "x", "ci.ddupan.top/leader": "true" });
    assert.deepEqual(await label.list(call), ["controller-0"]);
    assert.deepEqual(await other.list(call), []);
  }
  for (const _ of [1, 2]) {
    assert.equal(await label.set("controller-0", false, call), true);
    assert.deepEqual(await labels(), { app: "x" });
    assert.deepEqual(await label.list(call), []);
  }
  assert.equal(await label.set("controller-1", true, call), false);
});
