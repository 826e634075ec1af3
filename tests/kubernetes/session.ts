import assert from "node:assert/strict";
import type { AssignmentDetailView, AssignmentView, Page } from "../../controller/views/views.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { eventually } from "../support/eventually.ts";
import type { RunView } from "../support/gitea_api.ts";
import { at } from "../support/kube_manifests.ts";
import type { ReplicaOptions } from "./replicas.ts";
import { serveService } from "./service.ts";
import type { Stage } from "./stage.ts";

/** Controllers that run, and what a check asks about the jobs that it starts. */
export interface Session extends AsyncDisposable {
  /** Names of the controllers' Pods that are to be removed in the end. */
  readonly names: string[];
  /** JSON of the leader's API. */
  get(path: string): Promise<unknown>;
  /** The assignment of a run's only job; waits until it is known. */
  assignment(run: number): Promise<AssignmentDetailView>;
  /** The Pod of a run's executor, when it is there. */
  executor(run: number): Promise<string>;
  /** The run when it has ended. */
  ended(run: number, timeoutMs?: number): Promise<RunView>;
  /** The job's log at Gitea. */
  log(run: number): Promise<string>;
  /** Resolves when the log of the run's job at Gitea fits. */
  logged(run: number, pattern: RegExp, timeoutMs?: number): Promise<string>;
  /** Executors' Pods and identity entries that are there; `none` without any. */
  leftovers(): Promise<string>;
  /** Resolves when there is none; rejects with what is left. */
  nothingLeft(timeoutMs: number): Promise<void>;
  /** Every line of the log of the controllers that were started here. */
  controllerLog(): Promise<Readonly<Record<string, unknown>>[]>;
}

const JOB_MS = 120_000;

/** Starts `count` controllers of the Deployment and the facade's Service; ends them when disposed of. */
export async function startSession(
  stage: Stage,
  { count = 1, ...options }: ReplicaOptions & { readonly count?: number } = {},
): Promise<Session> {
  const { cluster, installation, gitea, repository, replicas, report } = stage;
  const { client, peers } = cluster;
  await using stack = new AsyncDisposableStack();
  stack.use(
    await serveService(client, { namespace: installation.controller, name: "facade" }, {
      port: peers.port(installation.service),
      say: report.say,
    }),
  );
  const names: string[] = [];
  stack.defer(async () => {
    await Promise.all(names.map((name) => replicas.remove(name)));
  });
  for (let index = 0; index < count; index++) names.push(await replicas.add(options));
  await replicas.leader();
  const owned = stack.move();

  const get = async (path: string) => await replicas.get(await replicas.leader(), path);
  const assignment = async (run: number) => {
    const found = await eventually(async () => {
      const { items } = await get("/api/v1/assignments?limit=100") as Page<AssignmentView>;
      return items.find((one) => one.runId === String(run));
    }, { what: `the assignment of run ${run}`, timeoutMs: 60_000, everyMs: 250 });
    return await get(`/api/v1/assignments/${found.id}`) as AssignmentDetailView;
  };
  const log = async (run: number) => {
    const [job] = (await gitea.run(repository, run)).jobs;
    return job === undefined ? "" : await gitea.log(repository, job.id).catch(() => "");
  };
  const leftovers = async () => {
    const lists = await Promise.all([
      client.call("GET", `/api/v1/namespaces/${installation.executors}/pods`),
      client.call("GET", "/apis/spire.spiffe.io/v1alpha1/clusterstaticentries"),
    ]);
    const found = lists.flatMap(({ items, kind }) =>
      (Array.isArray(items) ? items : []).filter((one) =>
        objectOrEmpty(at(one, "metadata", "labels"))["ci.ddupan.top/runner"] === "true"
      ).map((one) => `${String(kind).replace("List", "")} ${at(one, "metadata", "name")}`)
    );
    return found.length === 0 ? "none" : found.join(", ");
  };
  return {
    names,
    get,
    assignment,
    log,
    leftovers,
    async executor(run) {
      return await eventually(async () => {
        const { executor } = await assignment(run);
        return executor !== null && cluster.kubelet.pod(executor) !== undefined && executor;
      }, { what: `the executor of run ${run}`, timeoutMs: 60_000, everyMs: 200 });
    },
    ended: (run, timeoutMs = JOB_MS) =>
      eventually(async () => {
        const view = await gitea.run(repository, run);
        return view.done && view;
      }, { what: `the end of run ${run}`, timeoutMs, everyMs: 150 }),
    async logged(run, pattern, timeoutMs = JOB_MS) {
      let last = "";
      await eventually(async () => pattern.test(last = await log(run)), {
        what: `${pattern} in the log of run ${run}`,
        timeoutMs,
        everyMs: 500,
      }).catch((cause) => assert.match(last, pattern, String(cause)));
      return last;
    },
    async nothingLeft(timeoutMs) {
      await eventually(async () => await leftovers() === "none", {
        what: "the end of Pods and entries",
        timeoutMs,
        everyMs: 300,
      }).catch(async () => {
        throw new Error(`Still there after ${timeoutMs / 1000} s: ${await leftovers()}`);
      });
    },
    async controllerLog() {
      return (await Promise.all(names.map((name) => replicas.log(name)))).flat();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
