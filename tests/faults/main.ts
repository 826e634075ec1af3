/**
 * Faults: the product as a process, with real servers around it that are killed, stopped, cut off and
 * made to misbehave at chosen moments. Ends with `N passed, N failed, N skipped`; the exit code is 0
 * when nothing failed.
 *
 * `--only=TEXT` takes the cases with TEXT in their name; several texts are separated by `|`.
 * `--runner=sample` lets the product's own sample runner do the jobs of the cases without Gitea; by
 * default the official one does. The chaos at the end plays `--jobs=2000` jobs of `--seed=N`.
 */
import { suiteOptions } from "../support/suite_parts.ts";
import { awayCases, cancelCases, endCases, waitCases } from "./gitea_cases.ts";
import { openGiteaSide } from "./gitea_side.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { forgeCases } from "./forge_cases.ts";
import { openForgeSide } from "./forge_side.ts";
import { killCases } from "./kill_cases.ts";
import { playLanes } from "./lanes.ts";
import { MUTATIONS } from "./mutations.ts";
import { playMutations } from "./planted_bugs.ts";
import { openDiary } from "../chaos/diary.ts";
import { playChaos, sumsOf } from "../chaos/play_all.ts";
import { createReport, type Report } from "../e2e/report.ts";
import { findRunner } from "../../embedded/executor_image.ts";
import { PARKED, parkedCases, startCases } from "./start_cases.ts";
import { openWorld, type Runner } from "./world.ts";

const FORGE_LANES = 3;
const GITEA_LANES = 2;

async function main(): Promise<number> {
  const values = suiteOptions({
    only: { type: "string", default: "" },
    runner: { type: "string" },
    jobs: { type: "string", default: "2000" },
    seed: { type: "string" },
  });
  const report = createReport(print);
  const logFolder = await Deno.makeTempDir({ prefix: "gdr-faults-logs-" });
  const wanted = <T extends { readonly name: string }>(cases: readonly T[]) =>
    cases.filter(({ name }) => values.only.split("|").some((text) => name.includes(text)));
  const path = await findRunner(Deno.env.get("PATH") ?? "");
  const runner: Runner = path === null || values.runner === "sample"
    ? { kind: "sample" }
    : { kind: "official", path };
  print(`jobs are run by the ${runner.kind} runner`);
  const stage = { report, logFolder, wanted };
  await Promise.all([
    playLanes(wanted([...killCases, ...forgeCases, ...startCases]), {
      ...stage,
      lanes: FORGE_LANES,
      open: () => openWorld({ runner, openSide: openForgeSide }),
    }),
    report.attempt("the cases with a Gitea of its own", () => playGitea(stage)),
    report.attempt("the cases with an impatient Gitea", () => playImpatientGitea(stage)),
  ]);
  // Alone: thirty executors at a time are more load than the bounds of the others allow for.
  await playLanes(wanted(parkedCases), {
    ...stage,
    lanes: 1,
    open: () => openWorld({ runner, capacity: PARKED, openSide: openForgeSide }),
  });
  await report.attempt("the planted bugs", () => playMutations(wanted(MUTATIONS), report));
  const chaos = { name: `${values.jobs} short jobs under random faults` };
  if (wanted([chaos]).length > 0) {
    await report.attempt(chaos.name, () => playRandomFaults(values, report));
  }
  if (report.failed > 0) print(`logs of the product: ${logFolder}`);
  else await Deno.remove(logFolder, { recursive: true });
  print(`${report.passed} passed, ${report.failed} failed, 0 skipped`);
  return report.failed === 0 ? 0 : 1;
}

interface Stage {
  readonly report: Report;
  readonly logFolder: string;
  wanted<T extends { readonly name: string }>(cases: readonly T[]): readonly T[];
}

async function playGitea({ wanted, ...stage }: Stage): Promise<void> {
  const together = wanted([...endCases, ...cancelCases]);
  const alone = wanted(awayCases);
  if (together.length + alone.length === 0) return;
  await using peers = await startPeers({ which: ["gitea"], say: print });
  const open = opener(peers, {});
  await playLanes(together, { ...stage, lanes: GITEA_LANES, open });
  await playLanes(alone, { ...stage, lanes: 1, open });
}

async function playImpatientGitea({ wanted, ...stage }: Stage): Promise<void> {
  const cases = wanted(waitCases);
  if (cases.length === 0) return;
  const extra = [
    "ZOMBIE_TASK_TIMEOUT = 60s",
    "[cron.stop_zombie_tasks]",
    "SCHEDULE = @every 15s",
  ];
  await using peers = await startPeers({
    which: ["gitea"],
    env: { GITEA_EXTRA: extra.join("\n") },
    say: print,
  });
  const open = opener(peers, { GITEA_ZOMBIE_TIMEOUT: "60" });
  await playLanes(cases, { ...stage, lanes: 1, open });
}

/** The same as the task `test:chaos`; what failed stays in the diary, whose folder is printed. */
async function playRandomFaults(
  values: { readonly jobs: string; readonly seed?: string },
  report: Report,
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "gdr-chaos-diary-" });
  const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  const diary = await openDiary(folder, { seed, jobs: Number(values.jobs) });
  print(`seed ${seed}, ${values.jobs} jobs, diary in ${folder}`);
  const failedBefore = report.failed;
  await playChaos(diary, { report, until: Infinity, interrupted: new Set() });
  print(sumsOf(diary));
  if (report.failed === failedBefore) await Deno.remove(folder, { recursive: true });
}

/** Worlds with one slot and the official runner, each with a repository of its own. */
function opener(peers: Peers, env: Readonly<Record<string, string>>) {
  let count = 0;
  return () =>
    openWorld({
      runner: { kind: "official", path: `${peers.bin}/gitea-runner` },
      capacity: 1,
      env,
      openSide: (outside) => openGiteaSide(peers, outside, `faults-${++count}`),
    });
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) Deno.exit(await main());
