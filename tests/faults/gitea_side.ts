import { register } from "../../clients/gitea/register.ts";
import { fromStatus } from "./gitea_status.ts";
import { systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { startHoldProxy } from "../support/hold_proxy.ts";
import type { Peers } from "../support/peers.ts";
import { eventually } from "../support/eventually.ts";
import { type JobPlan, type Outside, type OutsideJob, type Side, STEPS } from "./side.ts";

/** A repository of a real Gitea with a runner of its own. */
export interface GiteaSide extends Side, AsyncDisposable {
  readonly peers: Peers;
  /** Signs in anew: Gitea forgets sessions when it is stopped. */
  signIn(): void;
}

const REGISTER_MS = 20_000;

/** Makes the repository `name`, registers a runner at it alone, and puts a proxy before Gitea. */
export async function openGiteaSide(
  peers: Peers,
  outside: Outside,
  name: string,
): Promise<GiteaSide> {
  const { admin, address, token } = peers.gitea;
  const url = `http://${address.hostname}:${address.port}`;
  const connect = (): GiteaApi =>
    createGiteaApi({ url, user: admin.name, password: admin.password, token });
  let api = connect();
  const repository = `${admin.name}/${name}`;
  await api.createRepository(name, { private: true });
  await api.commit(repository, [{ path: ".gitea/workflows/fault.yaml", content: workflow() }]);
  const { token: registration } = await api.rest(
    "POST",
    `/repos/${repository}/actions/runners/registration-token`,
  ) as { readonly token: string };
  const runner = await register({
    url,
    registrationToken: new Secret(registration),
    name,
    labels: ["self-hosted", "pod", "vm"],
    version: "test",
    clock: systemClock,
  }, { signal: AbortSignal.timeout(REGISTER_MS) });
  const proxy = await startHoldProxy(address);
  const viewOf = async (job: OutsideJob) => (await api.run(repository, job.run)).jobs[0];
  return {
    kind: "gitea",
    peers,
    signIn: () => void (api = connect()),
    proxy,
    uuid: runner.uuid,
    token: runner.token.reveal(),
    async start(plan: JobPlan = {}) {
      const files = await outside.open(plan);
      const inputs = { file: files.file, rows: String(files.rows) };
      const run = await api.dispatch(repository, "fault.yaml", inputs);
      const job = await eventually(async () => (await api.run(repository, run)).jobs[0], {
        what: "the run to have its job",
      });
      return { ...files, id: job.id, run };
    },
    async result(job) {
      return fromStatus((await viewOf(job))?.status ?? "");
    },
    async rows({ id }) {
      const text = await api.log(repository, id).catch(() => "");
      // Each line begins with its time.
      return text.split("\n").map((line) => line.replace(/^\S+Z /, "").replace(/\r$/, ""));
    },
    async openSteps(job) {
      const steps = await api.steps(repository, job.run, job.id);
      return steps.filter(({ status }) => fromStatus(status) === null).length;
    },
    cancel: (job) => api.cancel(repository, job.run),
    passSilence() {},
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

function workflow(): string {
  const inputs = { file: { type: "string" }, rows: { type: "string" } };
  return JSON.stringify({
    name: "fault",
    on: { workflow_dispatch: { inputs } },
    jobs: {
      work: {
        "runs-on": ["self-hosted", "pod"],
        env: { FILE: "${{ inputs.file }}", ROWS: "${{ inputs.rows }}" },
        steps: STEPS.map((run) => ({ run })),
      },
    },
  });
}
