import assert from "node:assert/strict";
import type { AssignmentDetailView } from "../../controller/views/views.ts";
import { eventually } from "../support/eventually.ts";
import { at, readManifest } from "../support/kube_manifests.ts";
import { NAMESPACE } from "./cluster.ts";
import type { Hold } from "./kubelet.ts";
import { type Session, startSession } from "./session.ts";
import type { Stage } from "./stage.ts";
import { AFTER_CLAIM, BEFORE_CLAIM } from "./workflows.ts";

/** Seen by the assignment's own history or present reason. */
interface Expected {
  readonly code: string;
  readonly text: RegExp;
}

/** What is done to each executor before its job is claimed, and what must be told of it. */
const BEFORE: Readonly<
  Record<typeof BEFORE_CLAIM[number], {
    readonly hold: Hold;
    readonly act?: (stage: Stage, executor: string) => Promise<void>;
    readonly expected: Expected;
  }>
> = {
  "before-image-pull": {
    hold: { kind: "image_pull" },
    expected: { code: "image_pull", text: /ImagePullBackOff: Back-off pulling image/ },
  },
  "before-unschedulable": {
    hold: { kind: "unschedulable", message: "0/1 nodes are available: 1 Insufficient cpu." },
    expected: { code: "unschedulable", text: /0\/1 nodes are available: 1 Insufficient cpu/ },
  },
  "before-eviction": {
    hold: { kind: "creating" },
    act: ({ cluster: { kubelet } }, executor) => kubelet.evict(executor),
    expected: { code: "executor_lost", text: /Evicted/ },
  },
  "before-shutdown": {
    hold: { kind: "creating" },
    act: ({ cluster: { kubelet } }, executor) => kubelet.shutdown(executor, 10),
    expected: { code: "executor_lost", text: /Terminated|node shutdown/ },
  },
  "before-oom": {
    hold: { kind: "creating" },
    act: ({ cluster: { kubelet } }, executor) => kubelet.failed(executor, "OOMKilled", 137),
    expected: { code: "executor_failed", text: /OOMKilled/ },
  },
  "before-node-gone": {
    hold: { kind: "creating" },
    act: async (stage, executor) => {
      await stage.cluster.kubelet.vanish(executor);
      await deleted(stage, executor, ["--force", "--grace-period=0"]);
    },
    expected: { code: "executor_lost", text: /vanished before it asked for its job/ },
  },
  "before-deleted": {
    hold: { kind: "creating" },
    act: (stage, executor) => deleted(stage, executor, []),
    expected: { code: "executor_lost", text: /vanished before it asked for its job/ },
  },
};

/** What is done to each executor in mid-job, and what the job's log must say. */
const AFTER: Readonly<
  Record<typeof AFTER_CLAIM[number], {
    readonly act: (stage: Stage, executor: string) => Promise<void>;
    readonly text: RegExp;
    /** What the API must say of it, where that is more than the log shows. */
    readonly reason?: RegExp;
  }>
> = {
  "after-eviction": {
    act: ({ cluster: { kubelet } }, executor) => kubelet.evict(executor),
    text: /Evicted/,
  },
  "after-shutdown": {
    act: ({ cluster: { kubelet } }, executor) => kubelet.shutdown(executor, 20),
    text: /imminent node shutdown/,
  },
  "after-oom": {
    act: ({ cluster: { kubelet } }, executor) => kubelet.killForMemory(executor),
    text: /OOMKilled/,
  },
  "after-node-gone": {
    // The collector of Pods deletes those of nodes that are gone.
    act: async (stage, executor) => {
      await stage.cluster.kubelet.vanish(executor);
      await deleted(stage, executor, ["--force", "--grace-period=0"]);
    },
    text: /the executor vanished without a result/,
  },
  "after-deleted": {
    act: (stage, executor) => deleted(stage, executor, []),
    text: /gitea-dynamic-runner: the executor was deleted by somebody other than the controller/,
    reason: /^the executor was deleted by somebody other than the controller$/,
  },
};

async function deleted(
  { cluster: { peers: { kube } } }: Stage,
  executor: string,
  more: readonly string[],
): Promise<void> {
  const what = ["delete", "pod", executor, "-n", NAMESPACE.executors, "--wait=false"];
  await kube.kubectl([...what, ...more]);
}

/** Executors that cannot start, and executors that end in mid-job: outcome, API and the job's log. */
export async function checkEndings(stage: Stage): Promise<void> {
  const { cluster: { kubelet } } = stage;
  await using session = await startSession(stage, { env: { POD_CAPACITY: "20" } });
  try {
    await checkBefore(stage, session);
    await checkQuota(stage, session);
    await checkAfter(stage, session);
  } finally {
    kubelet.holdBy(() => undefined);
  }
  await stage.report.check("nothing is left of the endings", async () => {
    await session.nothingLeft(150_000);
    return "no Pod, no entry";
  });
}

async function checkBefore(stage: Stage, session: Session): Promise<void> {
  const { report, gitea, repository, cluster: { kubelet } } = stage;
  const held = new Set<string>(BEFORE_CLAIM);
  const jobOf = (pod: unknown) =>
    String(at(pod, "metadata", "annotations", "ci.ddupan.top/job-key"));
  const rule = (pod: unknown) => {
    const name = BEFORE_CLAIM.find((one) => one === jobOf(pod));
    return name !== undefined && held.has(name) ? BEFORE[name].hold : undefined;
  };
  kubelet.holdBy(rule);
  const runs = new Map<string, number>();
  for (const name of BEFORE_CLAIM) runs.set(name, await gitea.dispatch(repository, `${name}.yaml`));
  await Promise.all(
    BEFORE_CLAIM.map((name) =>
      report.check(`before the claim: ${name.slice("before-".length)}`, async () => {
        const run = runs.get(name) ?? 0;
        const { act, expected } = BEFORE[name];
        const executor = await session.executor(run);
        await act?.(stage, executor);
        const seen = await told(session, run, expected);
        if (act === undefined) await session.logged(run, expected.text, 90_000);
        held.delete(name);
        kubelet.holdBy(rule);
        const [job] = (await session.ended(run, 180_000)).jobs;
        assert.equal(job?.status, "success", await session.log(run));
        return `${expected.code}, "${seen.slice(0, 60)}", then success`;
      })
    ),
  );
}

/** Resolves to the text with which the API tells of the reason, now or in the history. */
async function told(session: Session, run: number, expected: Expected): Promise<string> {
  let last: AssignmentDetailView | undefined;
  return await eventually(async () => {
    last = await session.assignment(run);
    const { reason, events } = last;
    if (reason?.code === expected.code && expected.text.test(reason.detail)) return reason.detail;
    return events.map(({ detail }) => detail ?? "").find((detail) => expected.text.test(detail));
  }, { what: `the reason ${expected.code}`, timeoutMs: 60_000, everyMs: 200 }).catch((cause) => {
    const events = last?.events.map((one) => `${one.event} ${one.detail ?? ""}`).join("; ");
    throw new Error(`${cause}; reason ${JSON.stringify(last?.reason)}; events ${events}`);
  });
}

async function checkQuota(stage: Stage, session: Session): Promise<void> {
  const { report, gitea, repository, cluster: { client } } = stage;
  const path = `/api/v1/namespaces/${NAMESPACE.executors}/resourcequotas`;
  await report.check("before the claim: quota", async () => {
    const example = await readManifest("examples/quota.yaml", {
      kind: "ResourceQuota",
      name: "executors",
    });
    await client.call("POST", path, { ...example, spec: { hard: { pods: "0" } } });
    try {
      // Nobody counts here: the status is what is enforced.
      await client.call("PATCH", `${path}/executors/status`, {
        status: { hard: { pods: "0" }, used: { pods: "0" } },
      });
      const run = await gitea.dispatch(repository, "before-quota.yaml");
      const seen = await told(session, run, {
        code: "quota",
        text: /quota "executors" is used up/,
      });
      await session.logged(run, /quota "executors" is used up/, 90_000);
      await client.call("DELETE", `${path}/executors`);
      const [job] = (await session.ended(run, 120_000)).jobs;
      assert.equal(job?.status, "success", await session.log(run));
      return `quota, "${seen.slice(0, 60)}", then success`;
    } finally {
      await client.call("DELETE", `${path}/executors`).catch(() => {});
    }
  });
}

async function checkAfter(stage: Stage, session: Session): Promise<void> {
  const { report, gitea, repository } = stage;
  const runs = new Map<string, number>();
  for (const name of AFTER_CLAIM) runs.set(name, await gitea.dispatch(repository, `${name}.yaml`));
  await Promise.all(
    AFTER_CLAIM.map((name) =>
      report.check(`after the claim: ${name.slice("after-".length)}`, async () => {
        const run = runs.get(name) ?? 0;
        const { act, text, reason: told } = AFTER[name];
        await session.logged(run, /it has begun/);
        const since = performance.now();
        await act(stage, await session.executor(run));
        const [job] = (await session.ended(run, 240_000)).jobs;
        const seconds = ((performance.now() - since) / 1000).toFixed(1);
        const log = await session.log(run);
        const end = log.trimEnd().split("\n").slice(-4).join("\n");
        assert.equal(job?.status, "failure", end);
        assert.match(log, text, end);
        const { reason, result } = await session.assignment(run);
        assert.equal(result, "failure");
        if (told !== undefined) assert.match(reason?.detail ?? "", told);
        const why = log.split("\n").findLast((line) => text.test(line)) ?? "";
        return `failure after ${seconds} s, ${reason?.code ?? "no code"}: ${
          why.replace(/^\S+Z /, "").slice(0, 90)
        }`;
      })
    ),
  );
}

/** A sidecar that runs on does not keep the slot or the Pod. */
export async function checkSidecar(stage: Stage): Promise<void> {
  const { report, gitea, repository, cluster: { client, peers: { kube } } } = stage;
  const template = {
    apiVersion: "v1",
    kind: "Pod",
    spec: {
      containers: [{
        name: "sidecar",
        image: "gitea-dynamic-runner-executor:0.1.0",
        command: ["sleep", "3600"],
        securityContext: {
          allowPrivilegeEscalation: false,
          runAsNonRoot: true,
          capabilities: { drop: ["ALL"] },
        },
      }],
    },
  };
  await kube.kubectl([
    "create",
    "configmap",
    "template",
    "-n",
    NAMESPACE.controller,
    `--from-literal=pod.yaml=${JSON.stringify(template)}`,
  ]);
  await using session = await startSession(stage, {
    env: { POD_TEMPLATE_FILE: "/config/pod.yaml", POD_CAPACITY: "1" },
    configMap: "template",
  });
  await report.check("a sidecar outlives the runner: slot free, Pod and entry gone", async () => {
    const first = await gitea.dispatch(repository, "sidecar.yaml");
    const second = await gitea.dispatch(repository, "sidecar.yaml");
    for (const run of [first, second]) {
      const [job] = (await session.ended(run)).jobs;
      assert.equal(job?.status, "success", await session.log(run));
    }
    const since = performance.now();
    await session.nothingLeft(120_000);
    return `2 jobs at capacity 1, gone ${((performance.now() - since) / 1000).toFixed(1)} s later`;
  });
  await client.call("DELETE", `/api/v1/namespaces/${NAMESPACE.controller}/configmaps/template`);
}
