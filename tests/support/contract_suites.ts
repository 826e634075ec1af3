import assert from "node:assert/strict";
import type { Report } from "../e2e/report.ts";
import { readTap, type TapCase } from "./tap.ts";

/** Test files of `tests/contract/`, each run by itself. */
export interface Suite {
  readonly file: string;
  /** Tells two runs of one file apart. */
  readonly label?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly limitMs?: number;
  /** Cases that it ignores because another suite has them: not counted as skipped. */
  readonly elsewhere?: readonly string[];
}

const FOLDER = new URL("../contract/", import.meta.url).pathname;
const LIMIT_MS = 300_000;

/** What a part needs that starts its servers itself. */
export interface Alone {
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Runs suites one after the other, each case a check of the report. They start their servers themselves,
 * and stop them at their end: an abort is heeded between two of them.
 */
export async function checkSuites(
  { report, signal }: Alone,
  suites: readonly Suite[],
): Promise<void> {
  for (const suite of suites) {
    signal.throwIfAborted();
    const name = suite.label === undefined ? suite.file : `${suite.file} ${suite.label}`;
    await report.attempt(`contract suite ${name}`, async () => {
      const { cases, complete, figures, said } = await runSuite(suite);
      for (const one of cases) {
        const ignored = one.kind === "skipped" && suite.elsewhere?.includes(one.name);
        if (!ignored) await tell(report, one);
      }
      if (figures !== "") report.say(figures);
      assert.ok(cases.length > 0 && complete, `It has not come to its end: ${said}`);
    });
  }
}

async function runSuite({ file, env = {}, limitMs = LIMIT_MS }: Suite) {
  const figures = await Deno.makeTempFile({ prefix: "gdr-figures-" });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(figures));
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--reporter=tap", FOLDER + file],
    env: { NO_COLOR: "1", FIGURES_FILE: figures, ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(limitMs),
  }).output();
  const decoder = new TextDecoder();
  const { cases, planned } = readTap(decoder.decode(output.stdout));
  const failed = cases.some(({ kind }) => kind === "failed");
  return {
    cases,
    complete: planned === cases.length && (output.success || failed),
    figures: (await Deno.readTextFile(figures)).trim(),
    said: decoder.decode(output.stderr).trim().split("\n").slice(-15).join("\n"),
  };
}

async function tell(report: Report, { name, ...outcome }: TapCase): Promise<void> {
  switch (outcome.kind) {
    case "skipped":
      return report.skip(name);
    case "passed":
      await report.check(name, () => Promise.resolve("contract"));
      return;
    case "failed":
      await report.check(name, () => Promise.reject(new Error(outcome.why)));
      return;
    default:
      outcome satisfies never;
  }
}
