/**
 * End-to-end tests: real Gitea, official runner, nats-server and SPIRE, and the product as a process
 * between them. Ends with `N passed, N failed, N skipped`; the exit code is 0 when nothing failed.
 *
 * `--official` lets the official runner do the runs of the table by itself, which proves the table;
 * `--only=TEXT` takes the runs with TEXT in their name, and nothing else.
 */
import { onAbort } from "../../lib/abortable.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { run } from "../support/process.ts";
import { type RecordingProxy, startRecordingProxy } from "../support/recording_proxy.ts";
import { stopSignal } from "../support/stop_signal.ts";
import { suiteOptions } from "../support/suite_parts.ts";
import { receiveTraces } from "../support/trace_receiver.ts";
import { checkAfterScenarios } from "./after_scenarios.ts";
import { checkBurst } from "./burst.ts";
import { startOfficialRunner } from "./by_official_runner.ts";
import { prepareProduct, type ProductBase, startProduct } from "./by_product.ts";
import { checkCleanStop } from "./clean_stop.ts";
import { checkFurtherPrograms, checkPatientPrograms } from "./further_programs.ts";
import { type Grounds, prepareGrounds } from "./grounds.ts";
import { bareScenarios } from "./expectations.ts";
import { checkIdleRequests } from "./idle_requests.ts";
import { startOutsideCounter } from "./outside_counter.ts";
import { checkPlantedSecret, checkSearchFindsPlainEnvelope } from "./planted_secret.ts";
import { createReport, type Report } from "./report.ts";
import { playScenarios } from "./scenarios.ts";
import { checkTraces } from "./traces.ts";

/** For the product to end when the tests are interrupted. */
const stopPatienceMs = 12_000;
const scenarioTimeoutMs = 240_000;
const tableCapacity = 4;
const burstCapacity = 4;

interface Stage {
  readonly peers: Peers;
  readonly grounds: Grounds;
  readonly report: Report;
  readonly jobProxy: RecordingProxy;
  readonly logFolder: string;
  readonly only: { readonly only?: string };
  readonly signal: AbortSignal;
}

async function main(): Promise<number> {
  const values = suiteOptions({ official: { type: "boolean" }, only: { type: "string" } });
  const signal = stopSignal();
  const report = createReport(print);
  const logFolder = await Deno.makeTempDir({ prefix: "gdr-e2e-logs-" });
  await report.attempt("the end-to-end tests", async () => {
    if (Deno.uid() !== 0) {
      throw new Error("Run the end-to-end tests as root: each executor gets a user of its own");
    }
    await using peers = await startPeers({
      which: ["gitea", "nats", "spire"],
      rootUrlPort: 0,
      // Actions without a host come from Gitea itself: no other forge is reachable.
      env: { GITEA_EXTRA: "DEFAULT_ACTIONS_URL = self" },
      say: print,
      signal,
    });
    await using jobProxy = await startRecordingProxy(peers.gitea.address, { port: peers.port(0) });
    print(`real servers: ${await versions(peers)}`);
    const grounds = await prepareGrounds(peers, signal);
    const only = values.only === undefined ? {} : { only: values.only };
    const stage = { peers, grounds, report, jobProxy, logFolder, only, signal };
    const patient = values.official || values.only !== undefined
      ? Promise.resolve()
      : checkPatientPrograms(peers, { report, signal });
    const work = Promise.all([values.official ? official(stage) : product(stage), patient]);
    await stopped(work, signal);
  });
  if (report.failed > 0) print(`logs of the product: ${logFolder}`);
  else await Deno.remove(logFolder, { recursive: true });
  print(`${report.passed} passed, ${report.failed} failed, 0 skipped`);
  return report.failed === 0 ? 0 : 1;
}

async function official({ peers, grounds, report, only, signal }: Stage): Promise<void> {
  await using runner = await startOfficialRunner(peers, grounds.owner, { capacity: 4, signal });
  await playScenarios(grounds, runner, { report, timeoutMs: scenarioTimeoutMs, ...only });
}

async function product(stage: Stage): Promise<void> {
  const { peers, grounds, report, logFolder, only, signal } = stage;
  await using controllerProxy = await startRecordingProxy(peers.gitea.address);
  const base = await prepareProduct(peers, grounds.owner, {
    giteaUrl: controllerProxy.url,
    logFolder,
    signal,
  });
  await checkOneRunner(grounds, report, "before");
  controllerProxy.clear();
  await runsOfTheTable(stage, { base, controllerProxy });
  if (only.only !== undefined) return;
  await bareSelfHosted(stage, base);
  await checkIdleRequests(base, { report, controllerProxy });
  await checkOneRunner(grounds, report, "after");
  await checkFurtherPrograms(peers, { report, signal });
}

async function runsOfTheTable(
  stage: Stage,
  made: { readonly base: ProductBase; readonly controllerProxy: RecordingProxy },
): Promise<void> {
  const { grounds, report, jobProxy, only } = stage;
  await using receiver = receiveTraces();
  await using product = await startProduct(made.base, {
    name: "table",
    podCapacity: tableCapacity,
    vmCapacity: 2,
    env: { DEFAULT_BACKEND: "pod", OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
  });
  const played = await playScenarios(grounds, product, {
    report,
    timeoutMs: scenarioTimeoutMs,
    ...only,
  });
  if (only.only !== undefined) return;
  await checkAfterScenarios(product, played, {
    report,
    controllerProxy: made.controllerProxy,
    jobProxy,
  });
  await using counter = startOutsideCounter();
  const needles = await checkPlantedSecret(grounds, product, {
    report,
    counter,
    capacity: tableCapacity,
  });
  await checkTraces(product, { report, receiver, needles });
  await checkCleanStop(product, report);
  await checkSearchFindsPlainEnvelope(grounds, { report, needles });
  // A message of the control must not be taken for a job by the next start.
  await stage.peers.script("nats.sh", "wipe");
  await stage.peers.script("nats.sh", "start");
}

/** A product without DEFAULT_BACKEND: the burst, and the rule for jobs that say only self-hosted. */
async function bareSelfHosted(stage: Stage, base: ProductBase): Promise<void> {
  const { grounds, report } = stage;
  await using product = await startProduct(base, {
    name: "burst",
    podCapacity: burstCapacity,
    vmCapacity: 0,
  });
  await using counter = startOutsideCounter();
  await checkBurst(grounds, product, { report, counter, capacity: burstCapacity });
  await playScenarios(grounds, product, {
    report,
    timeoutMs: scenarioTimeoutMs,
    table: bareScenarios,
  });
}

async function versions(peers: Peers): Promise<string> {
  const parts = await Promise.all(
    ["gitea", "gitea-runner", "nats-server", "spire-server"].map(async (program) => {
      const { stdout, stderr } = await run(`${peers.bin}/${program}`, ["--version"]);
      const version = /v?\d+\.\d+\.\d+\S*/.exec(stdout + stderr)?.[0] ?? "of unknown version";
      return `${program} ${version}`;
    }),
  );
  return parts.join(", ");
}

async function checkOneRunner(grounds: Grounds, report: Report, when: string): Promise<void> {
  await report.check(`one runner at Gitea ${when} the runs`, async () => {
    const runners = await grounds.owner.runners();
    const names = runners.map((one) => `"${one.name}" (${one.labels.join(", ") || "no labels"})`);
    if (runners.length !== 1) throw new Error(`There are ${runners.length}: ${names.join(", ")}`);
    return names.join(", ");
  });
}

/**
 * Rejects with the signal's reason when it has aborted and the work has ended, or has had its time:
 * what the signal stops shall still find its servers.
 */
async function stopped(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<never>();
  const timers: ReturnType<typeof setTimeout>[] = [];
  const abort = () => {
    const reject = () => aborted.reject(signal.reason);
    work.then(reject, reject);
    timers.push(setTimeout(reject, stopPatienceMs));
  };
  const listening = onAbort(signal, abort);
  try {
    await Promise.race([work, aborted.promise]);
    signal.throwIfAborted();
  } finally {
    listening[Symbol.dispose]();
    for (const timer of timers) clearTimeout(timer);
  }
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) Deno.exit(await main());
