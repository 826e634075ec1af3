import assert from "node:assert/strict";
import { at, readManifests } from "../support/kube_manifests.ts";
import { NAMESPACE } from "./cluster.ts";
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
    rights: [ENTRIES, "pods [] [patch]"],
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
}

/** The rows of `kubectl auth can-i --list` that are about resources. */
function rightsOf(text: string): string[] {
  return text.split("\n").slice(1).flatMap((row) => {
    const [, resource, names, verbs] = /^(\S+)\s+\[\]\s+\[([^\]]*)\]\s+\[([^\]]*)\]$/.exec(row) ??
      [];
    return resource === undefined ? [] : [`${resource} [${names}] [${verbs}]`];
  }).sort();
}

/** A Pod such as executors are; `change` is laid over its spec. */
function podOf(
  name: string,
  labels: Readonly<Record<string, string>>,
  change: object = {},
): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: NAMESPACE.executors, labels },
    spec: {
      serviceAccountName: "gitea-task-executor",
      restartPolicy: "Never",
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 2000,
        runAsGroup: 2000,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [{
        name: "executor",
        image: "gitea-dynamic-runner-executor:0.1.0",
        command: ["sleep", "60"],
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      }],
      ...change,
    },
  });
}

async function checkAdmission({ report, cluster: { peers: { kube } } }: Stage): Promise<void> {
  const labels = { "ci.ddupan.top/runner": "true" };
  const namespace = ["-n", NAMESPACE.executors];
  const refused = async (work: Promise<string>, why: RegExp) => {
    const said = await work.then((text) => `it was done: ${text}`, (error) => String(error));
    assert.match(said, why);
  };
  await report.check("the executors' namespace lets the controller's Pods in alone", async () => {
    await refused(
      kube.kubectl(["create"], { stdin: podOf("squatter", {}) }),
      /only the service account "controller" of "gitea-dynamic-runner" makes Pods here/,
    );
    const made = await kube.kubectl(["create", `--as=${CONTROLLER}`], {
      stdin: podOf("admitted", labels),
    });
    assert.match(made, /pod\/admitted created/);
    const privileged = podOf("privileged", labels, { hostNetwork: true });
    await refused(
      kube.kubectl(["create", `--as=${CONTROLLER}`], { stdin: privileged }),
      /violates PodSecurity "restricted/,
    );
    return "administrator refused, controller admitted, a Pod beyond restricted refused";
  });
  await report.check("our labels and annotations are written by the controller alone", async () => {
    const label = (text: string, ...as: string[]) =>
      kube.kubectl(["label", "pod", "admitted", ...namespace, text, ...as]);
    const annotate = (text: string, ...as: string[]) =>
      kube.kubectl(["annotate", "pod", "admitted", ...namespace, text, ...as]);
    await refused(label("ci.ddupan.top/terminal=true"), /only the controller writes labels/);
    await refused(label("ci.ddupan.top/runner-"), /only the controller writes labels/);
    await refused(annotate("ci.ddupan.top/fork=false"), /only the controller writes annotations/);
    await refused(
      kube.kubectl(["debug", "admitted", ...namespace, "--image=x", "--profile=restricted"]),
      /executors get no ephemeral containers/,
    );
    await label("team=one");
    await label("ci.ddupan.top/terminal=true", `--as=${CONTROLLER}`);
    return "5 refused or let through as they must be";
  });
  await report.check("a Service account of the executors can do nothing with Pods", async () => {
    const made = podOf("by-executor", labels);
    await refused(kube.kubectl(["create", `--as=${EXECUTOR}`], { stdin: made }), /cannot create/);
    await refused(
      kube.kubectl(["get", "pods", ...namespace, `--as=${EXECUTOR}`]),
      /cannot list resource "pods"/,
    );
    await kube.kubectl(["delete", "pod", "admitted", ...namespace, "--grace-period=1"]);
    return "neither make nor read them";
  });
  await report.check("examples of the manifests are taken by the API server", async () => {
    const names = ["admin-service", "nats", "node-uid", "quota", "secret"];
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
