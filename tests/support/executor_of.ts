import type { Executor } from "../../controller/backend.ts";

/** A running executor without marks or identity, as a backend lists it; `over` says what differs. */
export function executorOf(
  over: Partial<Omit<Executor, "name">> & { readonly name?: string } = {},
): Executor {
  const { name = "ci-00-1", ...rest } = over;
  return {
    name: name as Executor["name"],
    uid: `uid-${name}`,
    phase: "running",
    metadata: { labels: {}, annotations: {} },
    createdAt: 0,
    identityTarget: null,
    terminating: false,
    ended: null,
    terminal: false,
    node: null,
    waiting: null,
    ...rest,
  };
}
