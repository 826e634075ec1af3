import assert from "node:assert/strict";
import type { Report } from "../e2e/report.ts";
import { readTap, type TapCase } from "./tap.ts";

/** Contract suites of the ports that a cluster implements: in memory, then on a real API server. */
const SUITES = [
  "backend_pod_fake_test.ts",
  "backend_pod_kube.ts",
  "lease_fake_test.ts",
  "lease_kube.ts",
] as const;
const FOLDER = new URL("../contract/", import.meta.url).pathname;
const LIMIT_MS = 300_000;

/**
 * Runs the contract suites, each case a check of the report. They start their servers themselves, and
 * stop them at their end: an abort is heeded between two of them.
 */
export async function checkContract(
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<void> {
  for (const file of SUITES) {
    signal.throwIfAborted();
    await report.attempt(`contract suite ${file}`, async () => {
      const { cases, complete, figures, said } = await runSuite(file);
      for (const one of cases) await tell(report, one);
      if (figures !== "") report.say(figures);
      assert.ok(cases.length > 0 && complete, `It has not come to its end: ${said}`);
    });
  }
}

async function runSuite(file: string) {
  const figures = await Deno.makeTempFile({ prefix: "gdr-figures-" });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(figures));
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--reporter=tap", FOLDER + file],
    env: { NO_COLOR: "1", FIGURES_FILE: figures },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(LIMIT_MS),
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
