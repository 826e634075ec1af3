import type { ExecutorView, Views } from "../controller/views/views.ts";

/** More than any installation has. */
const MOST_EXECUTORS = 100_000;

/** The executor of that name, as it is now; undefined when there is none. Rejects as {@link Views} does. */
export async function findExecutor(views: Views, name: string): Promise<ExecutorView | undefined> {
  const { items } = await views.executors({ limit: MOST_EXECUTORS, cursor: null });
  return items.find((each) => each.name === name);
}
