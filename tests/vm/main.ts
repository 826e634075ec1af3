/**
 * The VM backend on the real opensandbox-server: its contract, rounds of faults, whole jobs of a real Gitea
 * with the sandbox's program run as the server stored it, and recovery. Ends with
 * `N passed, N failed, N skipped`.
 *
 * `--only=NAME[,NAME]` takes parts of it; `--list` names them. The part `rounds` plays `--rounds=300` of
 * `--seed=4242`. The part `apart` lets microVMs, then Pods hang for `--hang-seconds=300` each; `--hung=vm`
 * and `--hung=pod` take one of them.
 */
import { BACKENDS } from "../../controller/model/ids.ts";
import { createReport } from "../e2e/report.ts";
import { stopSignal } from "../support/stop_signal.ts";
import {
  chooseParts,
  endSuite,
  numberOption,
  PART_OPTIONS,
  playParts,
  printLine,
  requireRoot,
  suiteArgs,
  suiteOptions,
} from "../support/suite_parts.ts";
import { type ApartPlan, checkApart } from "./apart.ts";
import { checkChain } from "./chain.ts";
import { checkEndings } from "./endings.ts";
import { checkRecovery } from "./recovery.ts";
import { checkSamples } from "./samples.ts";
import { type Stage, startStage } from "./stage.ts";
import { checkContract, checkRounds } from "./suites.ts";

/** Those that start their servers themselves. */
const ALONE: readonly string[] = ["contract", "rounds", "apart"];
/** The others, in the order in which they are played; each may be played alone. */
const PARTS: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  chain: checkChain,
  samples: checkSamples,
  recovery: checkRecovery,
  endings: checkEndings,
};
const NAMES: readonly string[] = [...ALONE, ...Object.keys(PARTS)];

/** Runs the suite and resolves to the exit code. */
export async function main(
  args: readonly string[],
  print: (line: string) => void,
): Promise<number> {
  const values = suiteOptions({
    ...PART_OPTIONS,
    rounds: { type: "string", default: "300" },
    seed: { type: "string", default: "4242" },
    "hang-seconds": { type: "string", default: "300" },
    hung: { type: "string" },
  }, args);
  const wanted = chooseParts(values, NAMES, print);
  if (wanted === null) return 0;
  const plan = { rounds: numberOption(values.rounds, 1), seed: numberOption(values.seed, 1) };
  const apart: ApartPlan = {
    hangMs: numberOption(values["hang-seconds"], 1) * 1000,
    hung: BACKENDS.toReversed().filter((name) => values.hung === undefined || name === values.hung),
  };
  if (apart.hung.length === 0) throw new TypeError(`Hang "${values.hung}": it is no backend`);
  const signal = stopSignal();
  const report = createReport(print);
  const started = performance.now();
  await report.attempt("the tests of microVMs", async () => {
    const alone = { report, signal };
    if (wanted.includes("contract")) await checkContract(alone);
    if (wanted.includes("rounds")) await checkRounds(alone, plan);
    if (wanted.includes("apart")) {
      await report.attempt('part "apart"', () => checkApart(alone, apart));
    }
    const parts = wanted.filter((name) => !ALONE.includes(name));
    if (parts.length === 0) return;
    requireRoot("the tests of microVMs");
    await using stage = await startStage({ report, signal });
    print(`the servers are up after ${((performance.now() - started) / 1000).toFixed(1)} s`);
    await playParts(parts, PARTS, stage);
  });
  return endSuite(report, started, print);
}

if (import.meta.main) Deno.exit(await main(suiteArgs(), printLine));
