/**
 * Chaos: short jobs through the real product while random faults come down on it, and an oracle that
 * looks from outside after every round. Ends with `N passed, N failed, N skipped`; the exit code is 0
 * when nothing failed.
 *
 *   --jobs=2000      so many jobs: 55 % steady, 35 % killed, 10 % real (see `schedule.ts`)
 *   --seed=N         what comes is a function of it; by default a new one, which is printed
 *   --resume=DIR     keeps the diary there, and goes on where it ends
 *   --minutes=M      begins no further round after that; `--resume` plays the rest
 *   --round=LANE:N   plays that round of the seed alone
 */
import { suiteOptions } from "../support/suite_parts.ts";
import { createReport } from "../e2e/report.ts";
import { openDiary } from "./diary.ts";
import { type Interrupted, LANES, playChaos, sumsOf } from "./play_all.ts";

async function main(): Promise<number> {
  const values = suiteOptions({
    jobs: { type: "string", default: "2000" },
    seed: { type: "string" },
    resume: { type: "string" },
    minutes: { type: "string" },
    round: { type: "string" },
  });
  const report = createReport(print);
  const diary = await openDiary(
    values.resume ?? await Deno.makeTempDir({ prefix: "gdr-chaos-diary-" }),
    {
      seed: number(values.seed ?? String(crypto.getRandomValues(new Uint32Array(1))[0])),
      jobs: number(values.jobs),
    },
  );
  const earlier = [...diary.entries];
  const until = performance.now() + number(values.minutes ?? "1440") * 60_000;
  print(`seed ${diary.plan.seed}, ${diary.plan.jobs} jobs, diary in ${diary.folder}`);
  const interrupted: Interrupted = new Set();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // Nothing may go on running; what was played to its end is in the diary.
    Deno.addSignalListener(signal, () => {
      Promise.all([...interrupted].map((close) => close())).finally(() => Deno.exit(130));
    });
  }
  const [lane, of] = values.round?.split(":") ?? [];
  const round = values.round === undefined ? {} : {
    round: { lane: LANES.find((name) => name === lane) ?? "steady", number: number(of ?? "1") },
  };
  const whole = await playChaos(diary, { report, until, interrupted, ...round });
  print(sumsOf(diary));
  if (!whole) print(`the time is over: go on with --resume=${diary.folder}`);
  const badBefore = earlier.filter(({ complaints }) => complaints.length > 0).length;
  const failed = report.failed + badBefore;
  print(`${report.passed + earlier.length - badBefore} passed, ${failed} failed, 0 skipped`);
  return failed === 0 ? 0 : 1;
}

function number(text: string): number {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) throw new TypeError(`Read "${text}": no number`);
  return value;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) Deno.exit(await main());
