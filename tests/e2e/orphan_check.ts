import assert from "node:assert/strict";
import { register } from "../../clients/gitea/register.ts";
import { createGiteaRest } from "../../clients/gitea/rest.ts";
import { createGitea, type GiteaClient } from "../../clients/gitea/runner_service.ts";
import { createOrphanCheck } from "../../controller/orphans.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { createControllerPlace, startController } from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { startPeers } from "../support/peers.ts";

const WORKFLOW = `on: workflow_dispatch
jobs:
  work:
    runs-on: [self-hosted, pod]
    steps:
      - run: echo one
      - run: echo two
`;

const call = { signal: new AbortController().signal };
const say = (text: string) => Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));

interface Registered {
  readonly uuid: string;
  readonly token: Secret;
  readonly client: GiteaClient;
}

interface Stage {
  readonly url: string;
  readonly api: GiteaApi;
  readonly repository: string;
}

/** A runner at Gitea that has declared the labels of the jobs. */
async function addRunner({ url, api }: Stage, name: string): Promise<Registered> {
  const labels = ["self-hosted", "pod"];
  const registrationToken = new Secret(await api.registrationToken());
  const { uuid, token } = await register({ url, registrationToken, name, labels }, call);
  const client = createGitea({ url, uuid, token });
  await client.declare({ version: "test", labels, capabilities: [] }, call);
  return { uuid, token, client };
}

/** Starts a run whose job is handed to the runner, and to nobody else. */
async function claim({ api, repository }: Stage, { client }: Registered): Promise<number> {
  const run = await api.dispatch(repository, "work.yaml");
  await eventually(async () => (await client.fetchTask(0n, call)).task !== undefined, {
    what: "the job to be handed out",
    timeoutMs: 30_000,
    everyMs: 1_500,
  });
  return run;
}

async function jobOf({ api, repository }: Stage, run: number) {
  const [job] = (await api.run(repository, run)).jobs;
  assert.ok(job !== undefined);
  return job;
}

/** The job failed, all its steps are closed, and its log says why. */
async function assertFailedWithReason(stage: Stage, run: number): Promise<void> {
  const { api, repository } = stage;
  const job = await jobOf(stage, run);
  assert.equal(job.status, "failure");
  const steps = await api.steps(repository, run, job.id);
  assert.ok(
    steps.every(({ status }) => !["running", "waiting"].includes(status)),
    JSON.stringify(steps.map(({ name, status }) => [name, status])),
  );
  const own = steps.filter(({ name }) => name.startsWith("Run "));
  assert.deepEqual(own.map(({ status }) => status), ["cancelled", "cancelled"]);
  assert.match(await api.log(repository, job.id), /this job is lost[\s\S]*Run the job again/);
}

/** The check itself, in moments, with one kind of token. */
async function checkWithToken(stage: Stage, token: string): Promise<void> {
  await using ours = (await addRunner(stage, `ours-${crypto.randomUUID()}`)).client;
  const mine = { client: ours, uuid: "", token: new Secret("-") };
  const lost = await claim(stage, mine);
  const other = await addRunner(stage, `other-${crypto.randomUUID()}`);
  await using _other = other.client;
  const foreign = await claim(stage, other);
  const stop = new AbortController();
  const check = createOrphanCheck({
    clock: systemClock,
    logger: silentLogger,
    gitea: ours,
    running: createGiteaRest({ url: stage.url, token: new Secret(token) }),
    queue: { list: () => Promise.resolve([]) },
    records: { get: () => Promise.resolve(undefined) },
    known: () => false,
    ready: () => true,
    guard() {},
  }, { everyMs: 300, maxPauseMs: 300, minAgeMs: 1_000, apartMs: 500 });
  const running = check.run(stop.signal);
  try {
    await eventually(async () => (await jobOf(stage, lost)).status === "failure", {
      what: "the lost job to be failed",
      timeoutMs: 30_000,
      everyMs: 300,
    });
  } finally {
    stop.abort();
    await running;
  }
  await assertFailedWithReason(stage, lost);
  assert.equal((await jobOf(stage, foreign)).status, "running");
}

/** The product: a task that was claimed and dropped before it starts is failed within 5 minutes. */
async function checkProduct(stage: Stage, apiToken: string): Promise<void> {
  const runner = await addRunner(stage, "dynamic");
  const lost = await claim(stage, runner);
  await runner.client[Symbol.asyncDispose]();
  const neighbour = await addRunner(stage, "neighbour");
  await neighbour.client[Symbol.asyncDispose]();
  await using place = await createControllerPlace();
  await using controller = await startController({
    stateDir: place.stateDir,
    env: {
      PROFILE: "embedded",
      ALLOW_UNISOLATED: "yes",
      GITEA_URL: stage.url,
      GITEA_RUNNER_UUID: runner.uuid,
      GITEA_RUNNER_TOKEN: runner.token.reveal(),
      GITEA_API_TOKEN: apiToken,
      DEFAULT_BACKEND: "pod",
      LOG_FORMAT: "json",
    },
  });
  const warning = await controller.logged("other runners carry the label self-hosted");
  assert.ok((warning["runners"] as string[]).includes("neighbour"), JSON.stringify(warning));
  assert.ok(!(warning["runners"] as string[]).includes("dynamic"), JSON.stringify(warning));
  await eventually(async () => (await jobOf(stage, lost)).status === "failure", {
    what: "the lost job to be failed",
    timeoutMs: 300_000,
    everyMs: 2_000,
  });
  await assertFailedWithReason(stage, lost);
  await controller.logged("task known to nobody was failed at Gitea");
  assert.equal(await controller.end("SIGTERM"), 0, await controller.text());
}

/** Starts a Gitea for itself; each part is one line. */
async function main(): Promise<void> {
  await using peers = await startPeers({ which: ["gitea"], say });
  const { admin, rootUrl: url, token } = peers.gitea;
  const api = createGiteaApi({ url, user: admin.name, password: admin.password, token });
  const repository = `${api.user}/orphans`;
  await api.createRepository("orphans", { private: false });
  await api.commit(repository, [{ path: ".gitea/workflows/work.yaml", content: WORKFLOW }]);
  const stage = { url, api, repository };
  const limited = await tokenOf(url, admin, ["read:repository"]);
  const parts: readonly (readonly [string, () => Promise<void>])[] = [
    ["an administrator's token finds the lost task", () => checkWithToken(stage, token)],
    ["a token that reads repositories does, too", () => checkWithToken(stage, limited)],
    ["the product fails a task that it was killed with", () => checkProduct(stage, token)],
  ];
  let failures = 0;
  for (const [name, run] of parts) {
    try {
      await run();
      say(`ok      ${name}`);
    } catch (error) {
      failures++;
      say(`FAILED  ${name}: ${error instanceof Error ? error.stack : error}`);
    }
  }
  say(`${parts.length - failures} passed, ${failures} failed`);
  if (failures > 0) Deno.exitCode = 1;
}

async function tokenOf(
  url: string,
  user: { readonly name: string; readonly password: string },
  scopes: readonly string[],
): Promise<string> {
  const response = await fetch(`${url}/api/v1/users/${user.name}/tokens`, {
    method: "POST",
    headers: {
      authorization: `Basic ${btoa(`${user.name}:${user.password}`)}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ name: scopes.join(), scopes }),
  });
  const { sha1 } = await response.json() as { readonly sha1: string };
  return sha1;
}

if (import.meta.main) await main();
