import { register } from "../../clients/gitea/register.ts";
import { Secret } from "../../lib/secret.ts";
import { createGiteaApi, type GiteaApi, type JobView } from "../support/gitea_api.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { say } from "./support.ts";

/** A real Gitea on which the parts of this suite have places that do not meet. */
export interface Grounds extends AsyncDisposable {
  readonly gitea: GiteaApi;
  readonly peers: Peers;
  /** Makes a repository with one workflow, and a runner for it alone. */
  place(name: string, workflows: Readonly<Record<string, Jobs>>): Promise<Place>;
}

/** Jobs of a workflow by their keys. */
export type Jobs = Readonly<Record<string, JobPlan>>;

/** One job. */
export interface JobPlan {
  readonly label: string;
  /** What its only step does; by default it waits for {@link Place.open}. */
  readonly script?: string;
  /** How Gitea and the pages call it, in place of its key. */
  readonly name?: string;
}

/** A repository, and what a controller is told to take its jobs. */
export interface Place {
  readonly repository: string;
  readonly env: Readonly<Record<string, string>>;
  /** Starts the jobs of a workflow; resolves to the run. */
  dispatch(workflow: string): Promise<number>;
  jobs(run: number): Promise<readonly JobView[]>;
  /** Labels of its runner, as Gitea has them now. */
  labels(): Promise<readonly string[]>;
  /** Lets jobs end that wait for it, by their keys. */
  open(...jobs: readonly string[]): Promise<void>;
}

/** No job of this suite waits for longer, whatever becomes of the suite. */
const LONGEST_S = 600;

/** Starts Gitea. Everything is stopped and removed when it is disposed of. */
export async function startGrounds(): Promise<Grounds> {
  await using stack = new AsyncDisposableStack();
  const peers = stack.use(await startPeers({ which: ["gitea"], rootUrlHost: "127.0.0.1", say }));
  const { admin, rootUrl: url, token } = peers.gitea;
  const gitea = createGiteaApi({ url, user: admin.name, password: admin.password, token });
  const owned = stack.move();
  return {
    gitea,
    peers,
    async place(name, workflows) {
      const gates = `${peers.folder}/gates-${name}`;
      await Deno.mkdir(gates);
      // Executors have users of their own.
      await Deno.chmod(gates, 0o755);
      const repository = `${gitea.user}/${name}`;
      await gitea.createRepository(name, { private: false });
      await gitea.commit(
        repository,
        Object.entries(workflows).map(([file, jobs]) => ({
          path: `.gitea/workflows/${file}.yaml`,
          content: workflowOf(jobs, gates),
        })),
      );
      return {
        repository,
        env: {
          CI_RUNNER_BIN: `${peers.bin}/gitea-runner`,
          ...await registered(gitea, { url, repository, name }),
        },
        dispatch: (workflow) => gitea.dispatch(repository, `${workflow}.yaml`),
        jobs: async (run) => (await gitea.run(repository, run)).jobs,
        async labels() {
          const { runners } = await gitea.rest(
            "GET",
            `/repos/${repository}/actions/runners`,
          ) as { readonly runners: readonly { readonly labels: readonly { name: string }[] }[] };
          return runners.flatMap(({ labels }) => labels.map((label) => label.name));
        },
        async open(...jobs) {
          for (const job of jobs) await Deno.writeTextFile(`${gates}/${job}`, "");
        },
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** JSON is YAML. */
function workflowOf(jobs: Jobs, gates: string): string {
  const entries = Object.entries(jobs).map(([key, { label, name, script }]) => [key, {
    ...name === undefined ? {} : { name },
    "runs-on": ["self-hosted", label],
    steps: [{ run: script ?? waiting(`${gates}/${key}`) }],
  }]);
  return JSON.stringify({ on: "workflow_dispatch", jobs: Object.fromEntries(entries) });
}

const waiting = (file: string) =>
  `for i in $(seq 1 ${LONGEST_S}); do [ -e ${file} ] && exit 0; sleep 1; done; exit 1`;

/** A runner that gets jobs of this repository alone. */
async function registered(
  gitea: GiteaApi,
  { url, repository, name }: {
    readonly url: string;
    readonly repository: string;
    readonly name: string;
  },
): Promise<Record<string, string>> {
  const path = `/repos/${repository}/actions/runners/registration-token`;
  const { token: text } = await gitea.rest("POST", path) as { readonly token: string };
  const { uuid, token } = await register(
    { url, registrationToken: new Secret(text), name, labels: [] },
    { signal: AbortSignal.timeout(20_000) },
  );
  return { GITEA_URL: url, GITEA_RUNNER_UUID: uuid, GITEA_RUNNER_TOKEN: token.reveal() };
}
