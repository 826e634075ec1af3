import type { Peers } from "../support/peers.ts";
import { run } from "../support/process.ts";
import type { Report } from "./report.ts";

/** Tests of one part against its real server; each brings up what it needs and can be run alone. */
const programs = [
  { file: "gitea_contract.ts", what: "contract of the Gitea port on a real Gitea" },
  { file: "spire_entries.ts", what: "entries and SVIDs at a real SPIRE" },
  { file: "webhook.ts", what: "the webhook of a real Gitea" },
  { file: "executor_official.ts", what: "the gate with the official runner" },
] as const;

/** They wait for minutes and load nothing: the other tests need not wait for them. */
const patientPrograms = [
  { file: "orphan_check.ts", what: "tasks that nobody knows at a real Gitea" },
] as const;

/** How programs are run. */
export interface FurtherOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Runs each of the programs as one check: it passes when the program ends with exit code 0. */
export function checkFurtherPrograms(peers: Peers, options: FurtherOptions): Promise<void> {
  return checkAll(programs, { ...options, peers });
}

/** The same for those that may run beside everything else. */
export function checkPatientPrograms(peers: Peers, options: FurtherOptions): Promise<void> {
  return checkAll(patientPrograms, { ...options, peers });
}

async function checkAll(
  all: readonly { readonly file: string; readonly what: string }[],
  { peers, ...options }: FurtherOptions & { readonly peers: Peers },
): Promise<void> {
  for (const { file, what } of all) {
    await options.report.check(what, async () => {
      const path = new URL(file, import.meta.url).pathname;
      const { stdout, stderr } = await run(Deno.execPath(), ["run", "-A", path], {
        env: { PATH: `${peers.bin}:${Deno.env.get("PATH") ?? ""}` },
        cwd: new URL("../../", import.meta.url).pathname,
        signal: options.signal,
      });
      const said = `${stdout}\n${stderr}`.trimEnd().split("\n").filter((line) =>
        /^ok\b/.test(line)
      );
      return said.length === 0 ? "exit code 0" : `${said.length} parts`;
    });
  }
}
