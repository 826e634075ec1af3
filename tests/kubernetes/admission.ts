import assert from "node:assert/strict";
import { at } from "../support/kube_manifests.ts";
import { NAMESPACE } from "./cluster.ts";
import { type Stage, userOf } from "./stage.ts";

const CONTROLLER = userOf(NAMESPACE.controller, "controller");
const EXECUTOR = userOf(NAMESPACE.executors, "gitea-task-executor");

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

/** As the node's kubelet. kubectl reads the status before it writes it, which nodes have no right to. */
const NODE = ["--as=system:node:node-1", "--as-group=system:nodes", "--as-group=system:masters"];

/** Checks that kubectl was refused, in these words. */
export async function refused(work: Promise<string>, why: RegExp): Promise<void> {
  const said = await work.then((text) => `it was done: ${text}`, (error) => String(error));
  assert.match(said, why);
}

/** Checks what the API server lets into the namespace of the executors, and what becomes of it there. */
export async function checkAdmission(stage: Stage): Promise<void> {
  const { report, cluster: { peers: { kube } } } = stage;
  const labels = { "ci.ddupan.top/runner": "true" };
  const namespace = ["-n", NAMESPACE.executors];
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
    return "6 refused or let through as they must be";
  });
  await checkUpdates(stage);
  await checkEntrances(stage);
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
}

/** The Pod "admitted" keeps what runs in it and what the controller wrote, whichever way it is changed. */
async function checkUpdates(stage: Stage): Promise<void> {
  const { report, cluster: { kubelet, peers: { kube } } } = stage;
  const patch = (name: string, change: object, ...more: string[]) =>
    kube.kubectl([
      "patch",
      "pod",
      name,
      "-n",
      NAMESPACE.executors,
      "--type=strategic",
      "-p",
      JSON.stringify(change),
      ...more,
    ]);
  await report.check("executors keep their images", async () => {
    const why = /executors keep the images that the controller gave them/;
    const swap = { spec: { containers: [{ name: "executor", image: "other:1" }] } };
    await refused(patch("admitted", swap), why);
    const initContainers = [{
      name: "before",
      image: "gitea-dynamic-runner-executor:0.1.0",
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    }];
    // It never starts, so that its status and its binding are this test's alone.
    kubelet.holdBy((pod) =>
      at(pod, "metadata", "name") === "prepared"
        ? { kind: "unschedulable", message: "held by the test" }
        : undefined
    );
    await kube.kubectl(["create", `--as=${CONTROLLER}`], {
      stdin: podOf("prepared", {}, { initContainers }),
    });
    const swapFirst = { spec: { initContainers: [{ name: "before", image: "other:1" }] } };
    await refused(patch("prepared", swapFirst), why);
    await patch("prepared", { spec: { activeDeadlineSeconds: 600 } });
    // That the API server itself would have let it through is what makes the policy necessary.
    await patch("prepared", swapFirst, `--as=${CONTROLLER}`, "--dry-run=server");
    return "2 refused, another change let through";
  });
  await report.check("nobody keeps or owns an executor", async () => {
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "x", uid: crypto.randomUUID() };
    const changes = [
      { metadata: { finalizers: ["example.org/kept"] } },
      { metadata: { ownerReferences: [owner] } },
    ];
    for (const change of changes) {
      await refused(patch("admitted", change), /executors get no finalizers and no owners/);
      await patch("admitted", change, `--as=${CONTROLLER}`, "--dry-run=server");
    }
    return `${changes.length} refused`;
  });
  await report.check("a status carries no label or annotation of ours", async () => {
    const status = ["--subresource=status"];
    const key = "ci.ddupan.top/terminal";
    const labelled = { metadata: { labels: { [key]: "x" } } };
    const annotated = { metadata: { annotations: { [key]: "x" } } };
    for (const as of [[], NODE]) {
      await refused(patch("admitted", labelled, ...status, ...as), /controller writes labels/);
      await refused(
        patch("admitted", annotated, ...status, ...as),
        /controller writes annotations/,
      );
    }
    const condition = { type: "Prepared", status: "True", lastTransitionTime: null };
    const written = { status: { conditions: [condition] } };
    assert.match(await patch("prepared", written, ...status, ...NODE), /prepared patched/);
    return "4 refused, a node's own word let through";
  });
  await report.check("a binding carries no label or annotation of ours", async () => {
    const bind = (metadata: object, ...as: string[]) =>
      kube.kubectl(
        [
          "create",
          "--raw",
          `/api/v1/namespaces/${NAMESPACE.executors}/pods/prepared/binding`,
          ...as,
        ],
        {
          stdin: JSON.stringify({
            apiVersion: "v1",
            kind: "Binding",
            metadata: { name: "prepared", ...metadata },
            target: { apiVersion: "v1", kind: "Node", name: "elsewhere" },
          }),
        },
      );
    const annotations = { "ci.ddupan.top/fork": "false" };
    await refused(bind({ annotations }), /only the controller writes annotations/);
    const scheduler = ["--as=system:kube-scheduler"];
    await bind({ annotations: { team: "one" } }, ...scheduler);
    await kube.kubectl([
      "delete",
      "pod",
      "prepared",
      "-n",
      NAMESPACE.executors,
      "--grace-period=0",
      "--force",
    ]);
    kubelet.holdBy(() => undefined);
    return "1 refused, the scheduler's let through";
  });
}

/** Exec, attach and port-forward, by the administrator. Another namespace is as open as it was. */
async function checkEntrances({ report, cluster: { peers: { kube } } }: Stage): Promise<void> {
  const entrances = ["exec?command=id&stdout=1", "attach?stdout=1", "portforward", "proxy/"];
  await report.check("nobody enters an executor", async () => {
    for (const entrance of entrances) {
      const enter = (namespace: string) =>
        kube.kubectl(["get", "--raw", `/api/v1/namespaces/${namespace}/pods/admitted/${entrance}`]);
      await refused(enter(NAMESPACE.executors), /nobody enters an executor/);
      await refused(enter(NAMESPACE.controller), /pods "admitted" not found/);
    }
    await refused(
      kube.kubectl(["exec", "admitted", "-n", NAMESPACE.executors, "--", "id"]),
      /nobody enters an executor/,
    );
    return `${entrances.length} ways refused`;
  });
}
