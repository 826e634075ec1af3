import { register } from "../clients/gitea/register.ts";
import { createGitea } from "../clients/gitea/runner_service.ts";
import type { Gitea } from "../controller/gitea.ts";
import { createFacadeLink } from "../executor/facade_link.ts";
import { Secret } from "../lib/secret.ts";
import { create, fromBinary, timestampFromMs, toBinary } from "../proto/runtime.ts";
import {
  FetchTaskRequestSchema,
  LogRowSchema,
  type Task,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { GATE, JOB_ID, sampleInfo, setupFacade } from "../tests/support/facade_setup.ts";
import { issueSvid } from "../tests/support/svids.ts";
import { TRUST_DOMAIN } from "../tests/support/facade_setup.ts";
import { pause, type RealJobs, say, startRealJobs } from "./real_jobs.ts";
import { percentile, type Row, spread } from "./report.ts";

const ROWS = 100;
const SERVICE = "/api/actions/runner.v1.RunnerService";

/** Sends the next batch of rows of one task; resolves when Gitea has stored them. */
type Send = () => Promise<void>;

/**
 * Log rows of two running tasks of a real Gitea, one sent directly with the permanent credential, the
 * other as a gate does: mTLS to the facade, which forwards it with the same credential. Batches of 100
 * rows, one at a time, taking turns in blocks.
 */
export async function benchUpdateLog(options: { readonly batches: number }): Promise<Row[]> {
  await using jobs = await startRealJobs({
    log: () => `    strategy:\n      matrix:\n        n: [1, 2]\n    steps:\n      - run: "true"\n`,
  });
  const { gitea, tasks: [first, second] } = await takeTwoTasks(jobs);
  await using _gitea = gitea;
  await using facade = await throughFacade(gitea, second);
  const sides: Record<"direct" | "facade", Send> = {
    direct: sendDirectly(gitea, first),
    facade: facade.send,
  };
  const samples = { direct: [] as number[], facade: [] as number[] };
  for (const side of ["direct", "facade"] as const) await time(sides[side], 20);
  for (let block = 0; block * BLOCK < options.batches; block++) {
    for (const side of ["direct", "facade"] as const) {
      samples[side].push(...await time(sides[side], BLOCK));
    }
  }
  const rate = (times: readonly number[]) =>
    1_000 * ROWS * times.length / times.reduce((sum, ms) => sum + ms, 0);
  for (const side of ["direct", "facade"] as const) {
    say(`update log ${side}: ${rate(samples[side]).toFixed(0)} rows/s`);
  }
  const notes = [
    `direct: ${spread(samples.direct)} ms per ${ROWS} rows`,
    `through the facade: ${spread(samples.facade)} ms per ${ROWS} rows`,
  ];
  return [
    {
      what: "UpdateLog through the facade",
      unit: "rows/s",
      referenceName: "direct to Gitea",
      reference: rate(samples.direct),
      ours: rate(samples.facade),
      bound: { kind: "at_least", value: 0.8, of: "ratio" },
      notes,
    },
    {
      what: "UpdateLog latency added by the facade",
      unit: "ms, p50",
      referenceName: "direct to Gitea",
      reference: percentile(samples.direct, 0.5),
      ours: percentile(samples.facade, 0.5) - percentile(samples.direct, 0.5),
      bound: { kind: "at_most", value: 2, of: "ours" },
      notes: [],
    },
  ];
}

const BLOCK = 10;

async function time(send: Send, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    await send();
    times.push(performance.now() - started);
  }
  return times;
}

async function takeTwoTasks(jobs: RealJobs) {
  const { signal } = new AbortController();
  const url = jobs.peers.gitea.rootUrl;
  const registration = await register({
    url,
    registrationToken: new Secret(await jobs.gitea.registrationToken()),
    name: "bench",
    labels: ["self-hosted", "pod"],
  }, { signal });
  const gitea = createGitea({ url, uuid: registration.uuid, token: registration.token });
  const labels = ["self-hosted", "pod"];
  await gitea.declare({ version: "bench", labels, capabilities: [] }, { signal });
  await jobs.dispatch("log-ours");
  const tasks: Task[] = [];
  for (let attempt = 0; tasks.length < 2; attempt++) {
    if (attempt > 100) throw new Error(`Fetch two tasks: Gitea has given ${tasks.length}`);
    const { task } = await gitea.fetchTask(0n, { signal });
    if (task === undefined) await pause(100);
    else tasks.push(task);
  }
  const [first, second] = tasks;
  if (first === undefined || second === undefined) throw new Error("Fetch two tasks: one is none");
  return { gitea, tasks: [first, second] as const };
}

function batch(index: number) {
  const time = timestampFromMs(Date.now());
  return Array.from({ length: ROWS }, (_, row) =>
    create(LogRowSchema, {
      time,
      content: `row ${index + row}: what a build says while it works, some eighty characters of it`,
    }));
}

function sendDirectly(gitea: Gitea, task: Task): Send {
  const { signal } = new AbortController();
  let index = 0;
  return async () => {
    const answer = await gitea.updateLog(
      { taskId: task.id, index: BigInt(index), rows: batch(index), noMore: false },
      { signal },
    );
    index += ROWS;
    if (answer.ackIndex !== BigInt(index)) throw new Error(`Send rows: ack ${answer.ackIndex}`);
  };
}

async function throughFacade(gitea: Gitea, task: Task): Promise<{ send: Send } & AsyncDisposable> {
  const { signal } = new AbortController();
  const facade = await setupFacade({ deps: { gitea } });
  const info = sampleInfo(task.id);
  facade.facade.offers.offer(info, task);
  const svid = await issueSvid(facade.authority, [JOB_ID]);
  const link = createFacadeLink({ current: () => svid }, {
    url: facade.url,
    spiffeId: `spiffe://${TRUST_DOMAIN}/controller`,
    assignment: info.id,
    capability: new Secret(facade.capabilities.issue(info.id)),
    gate: GATE,
  });
  const call = async (method: string, body: Uint8Array) => {
    const headers = { "content-type": "application/proto", "connect-protocol-version": "1" };
    const answer = await link.post({ path: `${SERVICE}/${method}`, headers, body }, { signal });
    if (answer.status === 200) return answer.body;
    const said = new TextDecoder().decode(answer.body).slice(0, 200);
    throw new Error(`Call ${method} at the facade: ${answer.status} ${said}`);
  };
  await call("FetchTask", toBinary(FetchTaskRequestSchema, create(FetchTaskRequestSchema, {})));
  let index = 0;
  return {
    async send() {
      const request = create(UpdateLogRequestSchema, {
        taskId: task.id,
        index: BigInt(index),
        rows: batch(index),
        noMore: false,
      });
      const body = await call("UpdateLog", toBinary(UpdateLogRequestSchema, request));
      index += ROWS;
      const { ackIndex } = fromBinary(UpdateLogResponseSchema, body);
      if (ackIndex !== BigInt(index)) throw new Error(`Send rows: ack ${ackIndex}`);
    },
    async [Symbol.asyncDispose]() {
      link[Symbol.dispose]();
      await facade[Symbol.asyncDispose]();
    },
  };
}
