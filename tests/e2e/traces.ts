import { holdsSecret } from "../support/find_secret.ts";
import { eventually } from "../support/eventually.ts";
import type { TraceReceiver } from "../support/trace_receiver.ts";
import { flawsOf, traceOf, WHOLE_TRACE } from "../support/whole_trace.ts";
import { allAssignments } from "./assignments.ts";
import type { Product } from "./by_product.ts";
import type { Report } from "./report.ts";

/** Each assignment of the table is one whole trace, and what was looked for elsewhere is in none. */
export async function checkTraces(
  product: Product,
  options: {
    readonly report: Report;
    readonly receiver: TraceReceiver;
    /** What must not be found, by the name it goes by. */
    readonly needles: Readonly<Record<string, string>>;
  },
): Promise<void> {
  const { report, receiver, needles } = options;
  await report.check("each job is one trace, without a secret in it", async () => {
    const all = (await allAssignments(product)).filter(({ state }) => state === "cleaned");
    const ran = all.filter(({ executor }) => executor !== null);
    let flaws: string[] = [];
    await eventually(() => {
      flaws = ran.flatMap(({ id, job }) =>
        flawsOf(traceOf(receiver, id), WHOLE_TRACE).map((flaw) => `${id} of "${job}": ${flaw}`)
      );
      return flaws.length === 0;
    }, { what: "whole traces", timeoutMs: 10_000, everyMs: 500 }).catch(() => {
      throw new Error(flaws.join("\n"));
    });
    const text = new TextEncoder().encode(JSON.stringify(receiver.spans));
    const told = Object.entries(needles).filter(([, secret]) => holdsSecret(text, secret));
    if (told.length > 0) throw new Error(`Spans hold ${told.map(([name]) => name).join(", ")}`);
    return `${ran.length} traces of ${receiver.spans.length} spans`;
  });
}
