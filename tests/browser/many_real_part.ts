import type { Browser } from "playwright-core";
import { createQueue } from "../../clients/nats/queue.ts";
import { connectNats } from "../../clients/nats/connection.ts";
import { ensureStreams } from "../../clients/nats/streams.ts";
import { placeTask } from "../../controller/model/assignment.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import type { AssignmentView, Page } from "../../controller/views/views.ts";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats, type TestNats } from "../support/nats.ts";
import { encodePlainEnvelope } from "../support/plain_envelope.ts";
import { serveForge } from "../support/served_forge.ts";
import { runtimeToken, sampleTask } from "../support/tasks.ts";
import { LIGHT } from "./looks.ts";
import { scrollThrough, scrollToEnd } from "./scrolling.ts";
import { check, openPage, say } from "./support.ts";

const WAITING = 10_000;
const FIRST_TASK = 100_000;
const TRUST_DOMAIN = "gdr.invalid";
const VIEWERS = 200;
const NAMES = { stream: "CI_RUNNER", subjectBase: "ci.assignment" };

/** 10,000 messages that wait in JetStream when the controller starts: first byte, and 200 viewers. */
export async function manyReal(browser: Browser, folder: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const forge = stack.use(serveForge());
  const nats = stack.use(await startNats());
  const place = stack.use(await createControllerPlace());
  await publish(nats);
  const controller = stack.use(
    await startController({
      stateDir: place.stateDir,
      env: {
        ...forge.env,
        ...natsEnvironment(nats),
        PROFILE: "embedded",
        TRUST_DOMAIN,
        POD_CAPACITY: "0",
        VM_CAPACITY: "1",
        HEARTBEAT_MAX_RPS: "1",
      },
    }),
  );
  const url = await controller.url();
  const list = "/api/v1/assignments?state=stored&limit=1";
  const waiting = async () => (await controller.get<{ total: number }>(list)).total;
  await eventually(async () => await waiting() >= WAITING * 0.98, {
    what: "the stored messages to be read",
    timeoutMs: 120_000,
    everyMs: 500,
  });
  say(`        ${await waiting()} jobs wait in JetStream`);
  await measure(url, "/");
  await measure(url, "/?list=waiting");
  await measure(url, "/backends/pod");
  await viewers(url);

  const context = await browser.newContext(LIGHT);
  const page = await openPage(context, `${url}/`);
  await page.waitForSelector(".virtual", { timeout: 60_000 });
  await scrollToEnd(page);
  await page.getByText(`gitea-task-${FIRST_TASK + WAITING - 1}`).waitFor({ timeout: 60_000 });
  check("the last of those that wait can be scrolled to", true);
  const { ids } = await scrollThrough(page);
  // The forge knows none of them: now and then one that was drawn is gone by now.
  const left = await idsOf(controller);
  const dropped = left.filter((id) => !ids.has(id));
  check(
    `scrolling through drops no row (${left.length - dropped.length} of ${left.length})`,
    dropped.length === 0,
  );
  await page.screenshot({ path: `${folder}/many-real.png` });
  await context.close();
}

/** All that wait, page by page. */
async function idsOf(controller: Pick<ControllerProcess, "get">): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const from: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const path = `/api/v1/assignments?state=stored&backend=pod&limit=500${from}`;
    const page = await controller.get<Page<AssignmentView>>(path);
    ids.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== null);
  return ids;
}

/** As an older release stored them, so that no key is needed. */
async function publish(nats: TestNats): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const deps = { logger: silentLogger, clock: systemClock };
  const connection = stack.use(connectNats({
    servers: [nats.url],
    user: nats.user,
    password: nats.password === null ? null : new Secret(nats.password),
    credsFile: null,
    caFile: null,
  }, deps));
  const { signal } = new AbortController();
  await ensureStreams(connection, NAMES, { clock: systemClock, signal, onWait() {} });
  const queue = createQueue(connection, { ...NAMES, ...deps });
  const options = { trustDomain: TRUST_DOMAIN, defaultBackend: null };
  const one = async (index: number) => {
    const id = FIRST_TASK + index;
    const task = sampleTask({
      id: BigInt(id),
      context: {
        job: `job-${index % 97}`,
        repository: `team-${index % 40}/service-${index % 7}`,
        gitea_runtime_token: runtimeToken({ TaskID: id, RunID: 5, JobID: id }),
      },
    });
    const placed = placeTask(task, options);
    if (placed.kind !== "placed") throw new Error(`Place a task: ${placed.detail}`);
    const { info } = placed;
    const headers = { "Gdr-Repository": info.repository, "Gdr-Job": info.job };
    const data = encodePlainEnvelope(info, task);
    await queue.publish({ id: info.id, backend: info.backend, data, headers }, { signal });
  };
  for (let index = 0; index < WAITING; index += 200) {
    await Promise.all(Array.from({ length: 200 }, (_, i) => one(index + i)));
  }
}

/** Forty requests, one after the other: 95 of 100 must be under the bound. */
async function measure(url: string, path: string): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 40; i++) {
    const began = performance.now();
    const answer = await fetch(url + path, { headers: { accept: "text/html" } });
    times.push(performance.now() - began);
    await answer.body?.cancel();
  }
  times.sort((a, b) => a - b);
  const [p50 = Infinity, p95 = Infinity] = [times[19], times[37]];
  check(
    `first byte of ${path} with ${WAITING} waiting: p50 ${p50.toFixed(0)} ms, ` +
      `p95 ${p95.toFixed(0)} ms < 150 ms`,
    p95 < 150,
  );
}

/** Open streams that are read: each hears the next status. */
async function viewers(url: string): Promise<void> {
  const stop = new AbortController();
  const hears = async () => {
    const answer = await fetch(`${url}/api/v1/events?last=0-0`, {
      headers: { accept: "text/event-stream" },
      signal: stop.signal,
    });
    if (!answer.ok || answer.body === null) return false;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("event: status")) {
      const { done, value } = await reader.read();
      if (done) return false;
      text = `${text.slice(-64)}${value}`;
    }
    return true;
  };
  const limit = setTimeout(() => stop.abort(), 40_000);
  const heard = await Promise.all(
    Array.from({ length: VIEWERS }, () => hears().catch(() => false)),
  );
  clearTimeout(limit);
  stop.abort();
  const count = heard.filter(Boolean).length;
  check(`${count} of ${VIEWERS} viewers hear the status at the same time`, count === VIEWERS);
}
