import { eventually } from "../support/eventually.ts";
import type { Product } from "./by_product.ts";
import { allAssignments, assignmentDetail } from "./assignments.ts";
import type { Grounds } from "./grounds.ts";
import type { OutsideCounter } from "./outside_counter.ts";
import type { Report } from "./report.ts";

/** Jobs of `workflows/burst.yaml`. */
const jobs = 40;

/**
 * Queues 40 jobs at once. Checks that all end, that the jobs' own counter outside saw each once and
 * never more than `capacity` at a time, and that they were admitted in the order of the stream.
 */
export async function checkBurst(
  grounds: Grounds,
  product: Product,
  options: {
    readonly report: Report;
    readonly counter: OutsideCounter;
    readonly capacity: number;
  },
): Promise<void> {
  const { report, counter, capacity } = options;
  const { owner, closed } = grounds;
  let run = 0;
  await report.check(`${jobs} jobs at capacity ${capacity}: all end well`, async () => {
    run = await owner.dispatch(closed, "burst.yaml", { counter: counter.url });
    const view = await eventually(async () => {
      const seen = await owner.run(closed, run);
      return seen.done && seen;
    }, { what: `the end of ${jobs} jobs`, timeoutMs: 180_000, everyMs: 500 });
    const good = view.jobs.filter((job) => job.status === "success").length;
    if (good !== jobs) throw new Error(`${good} of ${view.jobs.length} jobs succeeded`);
    return `${jobs} succeeded`;
  });
  await report.check(`${jobs} jobs at capacity ${capacity}: as counted from outside`, () => {
    const twice = counter.begun.length - new Set(counter.begun).size;
    const missing = jobs - new Set(counter.ended).size;
    if (twice > 0 || missing > 0 || counter.ended.length !== jobs) {
      throw new Error(`${twice} began twice, ${missing} never ended`);
    }
    if (counter.mostAtOnce > capacity) throw new Error(`${counter.mostAtOnce} ran at once`);
    return Promise.resolve(`at most ${counter.mostAtOnce} at once, each once`);
  });
  await report.check(`${jobs} jobs at capacity ${capacity}: admitted in stream order`, async () => {
    const mine = (await allAssignments(product)).filter((one) => one.runId === String(run));
    if (mine.length !== jobs) throw new Error(`${mine.length} assignments of the run are known`);
    const admitted: { readonly sequence: number; readonly at: number; readonly seq: number }[] = [];
    for (const one of mine) {
      const { events, streamSequence } = await assignmentDetail(product, one.id);
      const acquired = events.filter((event) => event.event === "capacity_acquired");
      const [event] = acquired;
      if (event === undefined || streamSequence === null || acquired.length !== 1) {
        throw new Error(
          `${one.id}: stream sequence ${streamSequence}, ${acquired.length} times admitted`,
        );
      }
      admitted.push({
        sequence: streamSequence,
        at: Date.parse(event.at),
        seq: event.seq ?? 0,
      });
    }
    admitted.sort((a, b) => a.at - b.at || a.seq - b.seq);
    const wrong = admitted.findIndex((one, index) =>
      index > 0 && one.sequence < (admitted[index - 1]?.sequence ?? 0)
    );
    if (wrong > 0) {
      throw new Error(
        `Sequence ${admitted[wrong]?.sequence} came after ${admitted[wrong - 1]?.sequence}`,
      );
    }
    return `${admitted.length} in order`;
  });
}
