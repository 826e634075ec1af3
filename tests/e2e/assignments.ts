import { eventually } from "../support/eventually.ts";
import type { AssignmentDetailView, AssignmentView, Page } from "../../controller/views/views.ts";
import type { Product } from "./by_product.ts";

/** Every assignment that the product knows, ended ones too. */
export async function allAssignments(product: Product): Promise<AssignmentView[]> {
  const all: AssignmentView[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page = await product.get(`/api/v1/assignments?limit=100${query}`) as Page<AssignmentView>;
    all.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return all;
}

/** One assignment with its events. */
export async function assignmentDetail(
  product: Product,
  id: string,
): Promise<AssignmentDetailView> {
  return await product.get(`/api/v1/assignments/${id}`) as AssignmentDetailView;
}

/** Resolves to all assignments when each of them is `cleaned`. */
export async function awaitCleaned(
  product: Product,
  options: { readonly timeoutMs: number },
): Promise<AssignmentView[]> {
  let last: AssignmentView[] = [];
  try {
    return await eventually(async () => {
      last = await allAssignments(product);
      return last.length > 0 && last.every((one) => one.state === "cleaned") && last;
    }, { what: "every assignment to be cleaned", timeoutMs: options.timeoutMs, everyMs: 500 });
  } catch (error) {
    const left = last.filter((one) => one.state !== "cleaned")
      .map((one) => `${one.id} of "${one.job}" is ${one.state} (${one.reason?.code ?? "-"})`);
    throw new Error(`${error instanceof Error ? error.message : error}\n${left.join("\n")}`);
  }
}
