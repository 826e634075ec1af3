import type { RecordingProxy } from "../support/recording_proxy.ts";
import { type ProductBase, startProduct } from "./by_product.ts";
import type { Report } from "./report.ts";

const settleMs = 6000;
const watchMs = 30_000;
const capacities = [1, 50] as const;
/** Requests a minute by which two such short looks may differ. */
const tolerance = 4;

/** Counts what an idle product asks of Gitea with a small and a large capacity: it must be the same. */
export async function checkIdleRequests(
  base: ProductBase,
  options: { readonly report: Report; readonly controllerProxy: RecordingProxy },
): Promise<void> {
  const { report, controllerProxy } = options;
  await report.check("idle requests at Gitea do not depend on capacity", async () => {
    const perMinute: number[] = [];
    for (const capacity of capacities) {
      await using _product = await startProduct(base, {
        name: `idle-${capacity}`,
        podCapacity: capacity,
        vmCapacity: 0,
      });
      await sleep(settleMs);
      controllerProxy.clear();
      await sleep(watchMs);
      perMinute.push(Math.round(controllerProxy.requests.length * 60_000 / watchMs));
    }
    const [small = 0, large = 0] = perMinute;
    const figures = `${small} a minute with capacity ${capacities[0]}, ${large} with ${
      capacities[1]
    }`;
    if (small === 0 || Math.abs(small - large) > tolerance) throw new Error(figures);
    return figures;
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
