/**
 * `deno task bench [-- --quick] [-- handover|dispatch|twenty_jobs|update_log|kubernetes|memory ...]`: speed and
 * size, each beside a reference measured in the same run. The table goes to standard output,
 * what is going on to standard error. Exit code 1 when a bench could not be run; a missed bound is in
 * the table and no failure, because a loaded machine moves every figure.
 */
import { benchDispatch } from "./dispatch.ts";
import { benchHandOver } from "./handover.ts";
import { benchKubernetes } from "./kubernetes.ts";
import { benchMemory } from "./memory.ts";
import { say } from "./real_jobs.ts";
import { formatReport, holds, type Row } from "./report.ts";
import { benchTwentyJobs } from "./twenty_jobs.ts";
import { benchUpdateLog } from "./update_log.ts";

const quick = Deno.args.includes("--quick");
const wanted = Deno.args.filter((arg) => arg !== "--" && arg !== "--quick");
const benches: Readonly<Record<string, () => Promise<readonly Row[]>>> = {
  handover: () => benchHandOver({ jobs: 200, rounds: quick ? 5 : 15 }),
  dispatch: async () => [await benchDispatch({ runs: quick ? 5 : 20 })],
  twenty_jobs: () => benchTwentyJobs({ rounds: quick ? 1 : 3 }),
  update_log: () => benchUpdateLog({ batches: quick ? 100 : 500 }),
  kubernetes: () => benchKubernetes({ rounds: quick ? 5 : 15, calls: 100 }),
  memory: async () => [await benchMemory({ executors: quick ? 10 : 50 })],
};
const unknown = wanted.filter((name) => !Object.hasOwn(benches, name));
if (unknown.length > 0) {
  const names = Object.keys(benches).join(", ");
  say(`Choose benches: "${unknown.join(", ")}" is none of --quick, ${names}`);
  Deno.exit(2);
}

const rows: Row[] = [];
const broken: string[] = [];
for (const [name, bench] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  say(`--- ${name}`);
  try {
    rows.push(...await bench());
  } catch (error) {
    broken.push(name);
    say(`${name} could not be run: ${error instanceof Error ? error.stack : error}`);
  }
}
const memory = Deno.systemMemoryInfo();
print(`Deno ${Deno.version.deno}, ${navigator.hardwareConcurrency} cores, `);
print(`${(memory.total / 2 ** 30).toFixed(0)} GiB, load ${Deno.loadavg()[0]?.toFixed(1)}`);
print(`${quick ? ", quick" : ""}\n\n${formatReport(rows)}`);
const kept = rows.filter(holds).length;
print(`\n${kept} of ${rows.length} bounds kept`);
print(broken.length === 0 ? "\n" : `, could not be run: ${broken.join(", ")}\n`);
Deno.exit(broken.length === 0 ? 0 : 1);

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}
