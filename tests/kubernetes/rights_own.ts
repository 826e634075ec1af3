import assert from "node:assert/strict";
import { LEASE } from "../support/lease_cluster.ts";
import { refused } from "./admission.ts";
import { NAMESPACE } from "./cluster.ts";
import { type Stage, userOf } from "./stage.ts";

const CONTROLLER = userOf(NAMESPACE.controller, "controller");
const AS_CONTROLLER = [`--as=${CONTROLLER}`];
/** With every right, so that the admission policy alone refuses; kubectl reads before it patches, too. */
const BY_POLICY_ALONE = [...AS_CONTROLLER, "--as-group=system:masters"];
/** May edit everything in the executors' namespace. */
const MALLORY = ["--as=mallory"];
const ADVERTISED = "ci.ddupan.top/admin-advertise";
const LEADER = "ci.ddupan.top/leader";
const ENTRY = "ci-0123456789-424242";

/** Checks what the admission policies keep from others, and from the controller's own account. */
export async function checkOwnRights(stage: Stage): Promise<void> {
  const { kube } = stage.cluster.peers;
  await kube.kubectl([
    "create",
    "rolebinding",
    "mallory",
    "-n",
    NAMESPACE.executors,
    // What `edit` is made of: nothing adds it up here.
    "--clusterrole=system:aggregate-to-edit",
    "--user=mallory",
  ]);
  try {
    await checkLease(stage);
  } finally {
    await kube.kubectl(["delete", "rolebinding", "mallory", "-n", NAMESPACE.executors]);
  }
  await checkEntries(stage);
  await checkOwnPods(stage);
}

async function checkLease({ report, cluster: { peers: { kube } } }: Stage): Promise<void> {
  const there = ["lease", LEASE.name, "-n", NAMESPACE.executors];
  const lease = (name: string) =>
    JSON.stringify({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace: NAMESPACE.executors },
      spec: { holderIdentity: "somebody", leaseDurationSeconds: 15 },
    });
  const create = (name: string, as: readonly string[]) =>
    kube.kubectl(["create", ...as], { stdin: lease(name) });
  const patch = (change: object, as: readonly string[]) =>
    kube.kubectl(["patch", ...there, "--type=merge", "-p", JSON.stringify(change), ...as]);
  const why = /only service accounts of "gitea-dynamic-runner" contend for this Lease/;
  await report.check("the Lease is written by the controller alone", async () => {
    const others = [MALLORY, []];
    for (const as of others) await refused(create(LEASE.name, as), why);
    await create(LEASE.name, AS_CONTROLLER);
    for (const as of others) {
      const address = { metadata: { annotations: { [ADVERTISED]: "192.0.2.1:80" } } };
      await refused(patch(address, as), why);
      await refused(patch({ spec: { holderIdentity: "mallory" } }, as), why);
      await refused(kube.kubectl(["delete", ...there, ...as]), why);
      await refused(
        kube.kubectl(["delete", "lease", "--all", "-n", NAMESPACE.executors, ...as]),
        why,
      );
    }
    await patch({ spec: { holderIdentity: "controller-0_uuid" } }, AS_CONTROLLER);
    // Of another name it is nobody's affair.
    await create("others", MALLORY);
    await kube.kubectl(["delete", "lease", "others", "-n", NAMESPACE.executors, ...MALLORY]);
    await kube.kubectl([
      "delete",
      ...there,
      "--as=system:serviceaccount:kube-system:namespace-controller",
    ]);
    return "10 refused; the controller's own writes and the namespace's end let through";
  });
}

async function checkEntries({ report, cluster: { peers: { kube } } }: Stage): Promise<void> {
  const spec = {
    spiffeID: "spiffe://example.org/ci/owner/name/job",
    parentID: "spiffe://example.org/node",
    selectors: [`k8s:pod-uid:${crypto.randomUUID()}`, "unix:uid:2000"],
    className: "nobody",
    x509SVIDTTL: "1h",
  };
  const create = (change: object, name = ENTRY) =>
    kube.kubectl(["create", ...AS_CONTROLLER], {
      stdin: JSON.stringify({
        apiVersion: "spire.spiffe.io/v1alpha1",
        kind: "ClusterStaticEntry",
        metadata: { name },
        spec: { ...spec, ...change },
      }),
    });
  const remove = (name: string) =>
    kube.kubectl(["delete", "clusterstaticentry", name, "--wait=false", ...AS_CONTROLLER]);
  await report.check("the controller makes and deletes executors' identities alone", async () => {
    await refused(create({}, "service"), /makes and deletes entries of executors only/);
    const foreign = { spiffeID: "spiffe://example.org/any/service" };
    await refused(create(foreign), /executors have identities below "\/ci\/" or "\/ci-fork\/"/);
    await refused(create({ selectors: ["unix:uid:2000"] }), /selects one Pod by its uid/);
    const rights = [
      { admin: true },
      { downstream: true },
      { storeSVID: true },
      { federatesWith: ["example.com"] },
      { dnsNames: ["service.example.org"] },
    ];
    for (const right of rights) await refused(create(right), /has no rights at SPIRE/);
    await create({});
    await remove(ENTRY);
    await create({ spiffeID: "spiffe://example.org/ci-fork/owner/name/job" });
    await remove(ENTRY);
    const names = await kube.kubectl(["get", "clusterstaticentries", "-o", "name"]);
    const [own = ""] = names.split("\n").map((name) => name.split("/")[1] ?? "");
    assert.notEqual(own, "");
    await refused(remove(own), /makes and deletes entries of executors only/);
    return `${rights.length + 4} refused, ${own} stays; executors' own let through`;
  });
}

async function checkOwnPods({ report, cluster: { peers: { kube } } }: Stage): Promise<void> {
  const name = "beside";
  const at = ["-n", NAMESPACE.controller];
  const patch = (change: object) =>
    kube.kubectl([
      "patch",
      "pod",
      name,
      ...at,
      "--type=strategic",
      "-p",
      JSON.stringify(change),
      ...BY_POLICY_ALONE,
    ]);
  await report.check(
    "beside its own Pod the controller writes the leader's label alone",
    async () => {
      await kube.kubectl(["create"], {
        stdin: JSON.stringify({
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name, namespace: NAMESPACE.controller, labels: { app: name } },
          spec: {
            // Bound to no node: nothing runs it.
            schedulerName: "nobody",
            serviceAccountName: "controller",
            automountServiceAccountToken: false,
            securityContext: {
              runAsNonRoot: true,
              runAsUser: 1000,
              seccompProfile: { type: "RuntimeDefault" },
            },
            containers: [{
              name: "main",
              image: "example.org/beside:1",
              securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
            }],
          },
        }),
      });
      const changes = [
        { spec: { containers: [{ name: "main", image: "example.org/other:1" }] } },
        { spec: { activeDeadlineSeconds: 1 } },
        { metadata: { labels: { app: "other" } } },
        { metadata: { labels: { app: null } } },
        { metadata: { labels: { more: "true" } } },
        { metadata: { annotations: { more: "true" } } },
        { metadata: { finalizers: ["example.org/kept"] } },
      ];
      for (const change of changes) {
        await refused(patch(change), /the controller changes the leader's label of Pods here/);
      }
      for (const [label, note] of [["true", "namespace/lease"], [null, null]]) {
        const metadata = { labels: { [LEADER]: label }, annotations: { [`${LEADER}-of`]: note } };
        await patch({ metadata });
      }
      await kube.kubectl(["delete", "pod", name, ...at, "--grace-period=0", "--force"]);
      return `${changes.length} refused, the label put on and taken off`;
    },
  );
}
