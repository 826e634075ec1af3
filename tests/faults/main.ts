/**
 * Faults: the product as a process, with real servers around it that are killed, stopped, cut off and
 * made to misbehave at chosen moments. Ends with `N passed, N failed, N skipped`; the exit code is 0
 * when nothing failed.
 *
 * `--only=TEXT` takes the cases with TEXT in their name; several texts are separated by `|`. `--runner=sample` lets the product's own
 * sample runner do the jobs of the cases without Gitea; by default the official one does.
 */
import { parseArgs } from "node:util";
import { forgeCases } from "./forge_cases.ts";
import { openForgeSide } from "./forge_side.ts";
import { killCases } from "./kill_cases.ts";
import { playLanes } from "./lanes.ts";
import { createReport } from "../e2e/report.ts";
import { findRunner } from "../../embedded/executor_image.ts";
import { openWorld, type Runner } from "./world.ts";

const FORGE_LANES = 3;

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: Deno.args,
    options: { only: { type: "string", default: "" }, runner: { type: "string" } },
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
  await playLanes(wanted([...killCases, ...forgeCases]), {
    report,
    lanes: FORGE_LANES,
    logFolder,
    open: () => openWorld({ runner, openSide: openForgeSide }),
  });
  if (report.failed > 0) print(`logs of the product: ${logFolder}`);
  else await Deno.remove(logFolder, { recursive: true });
  print(`${report.passed} passed, ${report.failed} failed, 0 skipped`);
  return report.failed === 0 ? 0 : 1;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) Deno.exit(await main());
