import assert from "node:assert/strict";
import { at, MANIFESTS, readManifests } from "../support/kube_manifests.ts";
import { checkAdmission } from "./admission.ts";
import { NAMESPACE } from "./cluster.ts";
import { checkOwnRights } from "./rights_own.ts";
import { type Stage, userOf } from "./stage.ts";

const CONTROLLER = userOf(NAMESPACE.controller, "controller");
const EXECUTOR = userOf(NAMESPACE.executors, "gitea-task-executor");

/** What every authenticated user of this version of Kubernetes may do. */
const EVERYBODY = [
  "clustertrustbundles.certificates.k8s.io [] [get list watch]",
  "selfsubjectaccessreviews.authorization.k8s.io [] [create]",
  "selfsubjectreviews.authentication.k8s.io [] [create]",
  "selfsubjectrulesreviews.authorization.k8s.io [] [create]",
];

const ENTRIES = "clusterstaticentries.spire.spiffe.io [] [get list create delete]";

/** What `kubectl auth can-i --list` must say, by service account and namespace. */
const EXPECTED = [
  {
    user: CONTROLLER,
    namespace: NAMESPACE.executors,
    rights: [
      ENTRIES,
      "events [] [list create]",
      "leases.coordination.k8s.io [] [create]",
      "leases.coordination.k8s.io [dynamic-runner-scheduler] [get list watch patch]",
      "pods [] [get list watch create patch delete]",
    ],
  },
  {
    user: CONTROLLER,
    namespace: NAMESPACE.controller,
    rights: [ENTRIES, "pods [] [list patch]"],
  },
  { user: CONTROLLER, namespace: "default", rights: [ENTRIES] },
  { user: EXECUTOR, namespace: NAMESPACE.executors, rights: [] },
  { user: EXECUTOR, namespace: NAMESPACE.controller, rights: [] },
];

/** Checks what each service account may do, and what the namespace of the executors lets in. */
export async function checkRights(stage: Stage): Promise<void> {
  const { report, cluster: { peers: { kube } } } = stage;
  for (const { user, namespace, rights } of EXPECTED) {
    await report.check(`rights of ${user} in ${namespace}`, async () => {
      const text = await kube.kubectl(["auth", "can-i", "--list", "-n", namespace, `--as=${user}`]);
      assert.deepEqual(rightsOf(text), [...EVERYBODY, ...rights].sort());
      return `${rights.length} of its own, nothing else`;
    });
  }
  await checkAdmission(stage);
  await checkOwnRights(stage);
  await report.check(
    "another configuration is another ConfigMap, which the Deployment names",
    async () => {
      const shipped = /^ {2}name: (controller-\S+)$/m.exec(
        await kube.kubectl(["kustomize", MANIFESTS]),
      );
      const named = await kube.kubectl([
        "get",
        "deployment",
        "controller",
        "-n",
        NAMESPACE.controller,
        "-o",
        "jsonpath={.spec.template.spec.containers[0].envFrom[0].configMapRef.name}",
      ]);
      assert.match(named, /^controller-[a-z0-9]{10}$/);
      assert.match(String(shipped?.[1]), /^controller-[a-z0-9]{10}$/);
      assert.notEqual(named, shipped?.[1]);
      await kube.kubectl(["get", "configmap", named, "-n", NAMESPACE.controller]);
      return `${shipped?.[1]} as shipped, ${named} with the test's values`;
    },
  );
  await report.check("examples of the manifests are taken by the API server", async () => {
    const names = ["admin-service", "microvms", "nats", "node-uid", "quota", "secret"];
    // OpenSandbox's own, where guests are.
    await kube.kubectl(["create", "namespace", "opensandbox"]);
    let objects = 0;
    for (const name of names) {
      for (const one of await readManifests(`examples/${name}.yaml`)) {
        await kube.kubectl(["apply", "--server-side", "--dry-run=server"], {
          stdin: JSON.stringify(one),
        });
        assert.ok(at(one, "metadata", "name"));
        objects++;
      }
    }
    return `${objects} objects`;
  });
}

/** The rows of `kubectl auth can-i --list` that are about resources. */
function rightsOf(text: string): string[] {
  return text.split("\n").slice(1).flatMap((row) => {
    const [, resource, names, verbs] = /^(\S+)\s+\[\]\s+\[([^\]]*)\]\s+\[([^\]]*)\]$/.exec(row) ??
      [];
    return resource === undefined ? [] : [`${resource} [${names}] [${verbs}]`];
  }).sort();
}
