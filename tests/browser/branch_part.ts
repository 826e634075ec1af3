import type { Browser, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import type { GiteaApi } from "../support/gitea_api.ts";
import { inspect, LIGHT } from "./looks.ts";
import { check, openPage } from "./support.ts";

/** Where it is looked at, and by whom. */
export interface BranchSuite {
  readonly browser: Browser;
  readonly url: string;
  readonly folder: string;
  /** Bearer token of an admin. */
  readonly token: string;
}

/** All that git and Gitea let a branch be called: an image whose error runs a script. */
const BRANCH = `<img/src=""/onerror="document.title='owned'">`;
const WORKFLOW = `on: push
jobs:
  hostile:
    runs-on: [self-hosted, pod]
    steps:
      - run: for i in $(seq 1 240); do sleep 1; done
`;
const PATIENCE = { timeout: 60_000 };

interface Assignment {
  readonly id: string;
  readonly ref: string | null;
  readonly state: string;
}

/**
 * A job of a branch whose name is a script, pushed to a real Gitea: it is data in the API and text on
 * every page that names it, while the job runs and when it has ended.
 */
export async function hostileBranch(suite: BranchSuite, gitea: GiteaApi): Promise<void> {
  const { browser, url, folder } = suite;
  const repository = `${gitea.user}/branches`;
  await resume(suite);
  await gitea.createRepository("branches", { private: false });
  await gitea.rest("POST", `/repos/${repository}/contents`, {
    branch: "main",
    new_branch: BRANCH,
    message: "a workflow",
    files: [{
      operation: "upload",
      path: ".gitea/workflows/hostile.yaml",
      content: btoa(WORKFLOW),
    }],
  });
  const job = await found(suite, repository, "running");
  check(`the API has the branch as it is: ${job.ref}`, job.ref === `refs/heads/${BRANCH}`);

  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/sign-in`);
  await page.locator("input[name=token]").fill(suite.token);
  await page.locator(".sign-in-form button").click();
  await page.waitForSelector(".is-live", PATIENCE);
  await page.getByText(BRANCH).first().waitFor(PATIENCE);
  check("a script in a branch's name is text in the list", await harmless(page));
  await page.goto(`${url}/assignments/${job.id}`);
  await page.waitForSelector(".is-live", PATIENCE);
  check("it is text on the job's page", await shown(page) && await harmless(page));
  const link = await page.locator("header.title a[rel~=external]").getAttribute("href");
  check(
    "the link leads to the job at Gitea",
    link?.includes(`/${repository}/actions/runs/`) === true,
  );
  await inspect(page, folder, "hostile-branch");

  const [run] = await gitea.runs(repository);
  if (run !== undefined) await gitea.cancel(repository, run.id);
  const ended = await found(suite, repository, "cleaned");
  check("the ended job still has its branch", ended.ref === job.ref);
  for (const path of [`/assignments/${job.id}`, "/?list=ended", "/history", "/backends/pod"]) {
    await page.goto(url + path);
    await page.waitForSelector(".is-live", PATIENCE);
    check(`it has run nowhere on ${path.replace(job.id, ":id")}`, await harmless(page));
  }
  await context.close();
}

/** Somebody has cordoned it before. */
async function resume({ url, token }: BranchSuite): Promise<void> {
  const answer = await fetch(`${url}/api/v1/backends/pod/resume`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ note: "for a job" }),
  });
  await answer.body?.cancel();
  check("an admin's token resumes the backend", answer.ok);
}

async function found(
  { url, token }: BranchSuite,
  repository: string,
  state: string,
): Promise<Assignment> {
  return await eventually(async () => {
    const answer = await fetch(`${url}/api/v1/assignments?repository=${repository}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { items } = await answer.json() as { readonly items: readonly Assignment[] };
    return items.find((each) => each.state === state);
  }, { what: `a job of "${repository}" to be ${state}`, timeoutMs: 60_000, everyMs: 250 });
}

async function shown(page: Page): Promise<boolean> {
  return (await page.locator("main").innerText()).includes(`refs/heads/${BRANCH}`);
}

async function harmless(page: Page): Promise<boolean> {
  const made = await page.locator("img, [onerror]").count();
  return made === 0 && await page.title() !== "owned";
}
