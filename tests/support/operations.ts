import type { Operation } from "../../controller/actions/operation.ts";

/** An operation that has just begun; what is given replaces its fields. */
export function operationOf(id: string, over: Partial<Operation> = {}): Operation {
  return {
    id,
    action: { kind: "cordon", backend: "pod" },
    target: "pod",
    state: "running",
    progress: { done: 0, total: 1 },
    startedAt: 1_800_000_000_000,
    endedAt: null,
    by: "alice",
    role: "operator",
    note: "a node is replaced",
    requestId: "request-1",
    fingerprint: "f",
    before: null,
    after: null,
    error: null,
    ...over,
  };
}
