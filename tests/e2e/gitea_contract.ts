import { GITEA_CASES, type GiteaSubject } from "../contract/gitea_cases.ts";
import { eventually } from "../support/eventually.ts";
import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { startPeers } from "../support/peers.ts";

const WORKFLOW = `on: workflow_dispatch
jobs:
  work:
    runs-on: [self-hosted, pod]
    steps:
      - run: echo work
`;

/**
 * Runs the contract of the `Gitea` port on a real server, in a repository of its own. Calls `report`
 * for each case; resolves to the number of those that failed. No other runner may take the jobs.
 */
export async function runGiteaContract(
  api: GiteaApi,
  url: string,
  report: (name: string, error: unknown) => void,
): Promise<number> {
  const repository = `${api.user}/contract`;
  await api.createRepository("contract", { private: false });
  await api.commit(repository, [{ path: ".gitea/workflows/work.yaml", content: WORKFLOW }]);
  const subject: GiteaSubject = {
    url,
    registrationToken: () => api.registrationToken(),
    queueJob: async () => {
      const run = await api.dispatch(repository, "work.yaml");
      await eventually(
        async () => (await api.run(repository, run)).jobs.some((job) => job.status === "waiting"),
        { what: "the job to wait for a runner" },
      );
      return { cancel: () => api.cancel(repository, run) };
    },
  };
  let failures = 0;
  for (const { name, run } of GITEA_CASES) {
    try {
      await run(subject);
      report(name, undefined);
    } catch (error) {
      failures += 1;
      report(name, error);
    }
  }
  return failures;
}

/** Starts a Gitea for itself when run by itself. */
async function main(): Promise<void> {
  const say = (text: string) => Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
  await using peers = await startPeers({ which: ["gitea"], say });
  const { admin, rootUrl, token } = peers.gitea;
  const access = { url: rootUrl, user: admin.name, password: admin.password, token };
  const failures = await runGiteaContract(createGiteaApi(access), rootUrl, (name, error) => {
    say(error === undefined ? `ok      ${name}` : `FAILED  ${name}: ${error}`);
  });
  say(`${GITEA_CASES.length - failures} passed, ${failures} failed`);
  if (failures > 0) Deno.exitCode = 1;
}

if (import.meta.main) await main();
