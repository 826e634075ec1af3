import { startNats } from "../tests/support/nats.ts";
import { startPipeline } from "./pipeline.ts";
import { rawHandOver } from "./raw_queue.ts";
import { say } from "./real_jobs.ts";
import { percentile, type Row, spread } from "./report.ts";

const WINDOW = 16;
const WARM_UP = 500;

/**
 * Hand-over: fetch, publish, consume, accept, claim, ack, beside raw publish, fetch and double-ack on
 * the same nats-server, taking turns. The server syncs each message to disk, as the embedded one and
 * every configuration that we ship do.
 */
export async function benchHandOver(
  options: { readonly jobs: number; readonly rounds: number },
): Promise<Row[]> {
  await using nats = await startNats({ jetstreamSync: "always" });
  const payload = crypto.getRandomValues(new Uint8Array(1_000));
  await using raw = await rawHandOver(nats, { window: WINDOW, payload });
  const pipeline = (stores: Stores) => startPipeline(nats, { stores, fetchers: WINDOW });
  await using plain = await pipeline("nothing");
  await using recorded = await pipeline("records");
  await using whole = await pipeline("records_and_history");
  const sides = { raw, plain, recorded, whole };
  const samples: Record<keyof typeof sides, number[]> = {
    raw: [],
    plain: [],
    recorded: [],
    whole: [],
  };
  // Compiled before it is measured.
  for (const side of Object.values(sides)) await side.run(WARM_UP);
  for (let i = 0; i < options.rounds; i++) {
    for (const name of ["raw", "plain", "recorded", "whole"] as const) {
      const rate = options.jobs / await sides[name].run(options.jobs);
      samples[name].push(rate);
    }
    const rates = Object.entries(samples).map(([name, all]) => `${name} ${all[i]?.toFixed(0)}`);
    say(`hand-over ${i + 1}/${options.rounds}, jobs/s: ${rates.join(", ")}`);
  }
  const row = (what: string, ours: readonly number[], bound: number): Row => ({
    what,
    unit: "jobs/s",
    referenceName: "raw publish + fetch + double-ack",
    reference: percentile(samples.raw, 0.5),
    ours: percentile(ours, 0.5),
    // Pairs that ran within a second of each other, so that a busy moment of the machine hits both.
    ratio: percentile(ours.map((rate, i) => rate / (samples.raw[i] ?? NaN)), 0.5),
    bound: { kind: "at_least", value: bound, of: "ratio" },
    notes: [`reference: ${spread(samples.raw)} /s`, `ours: ${spread(ours)} /s`],
  });
  const recordedRow = row("hand-over with records", samples.recorded, 0.3);
  return [row("hand-over", samples.plain, 0.5), {
    ...recordedRow,
    notes: [
      ...recordedRow.notes,
      `with the history stream as well, as in production: ${spread(samples.whole)} /s`,
    ],
  }];
}

type Stores = Parameters<typeof startPipeline>[1]["stores"];
