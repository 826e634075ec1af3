import type { Peers } from "../support/peers.ts";
import { run } from "../support/process.ts";
import type { Report } from "./report.ts";

/** Tests of one part against its real server; each brings up what it needs and can be run alone. */
const programs = [
  { file: "gitea_contract.ts", what: "contract of the Gitea port on a real Gitea" },
  { file: "spire_entries.ts", what: "entries and SVIDs at a real SPIRE" },
  { file: "executor_official.ts", what: "the gate with the official runner" },
  { file: "orphan_check.ts", what: "tasks that nobody knows at a real Gitea" },
] as const;

/** Runs each of the programs as one check: it passes when the program ends with exit code 0. */
export async function checkFurtherPrograms(
  peers: Peers,
  options: { readonly report: Report; readonly signal: AbortSignal },
): Promise<void> {
  for (const { file, what } of programs) {
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
