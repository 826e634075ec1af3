import type { Views } from "../../controller/views/views.ts";

/** The same views with `change` on everything that is read from them; what they tell later is theirs. */
export function changedViews<V extends Views>(views: V, change: <T>(value: T) => T): V {
  const later =
    <A extends readonly unknown[], T>(read: (...args: A) => Promise<T>) => async (...args: A) =>
      change(await read(...args));
  const now = <A extends readonly unknown[], T>(read: (...args: A) => T) => (...args: A) =>
    change(read(...args));
  return {
    ...views,
    status: now(views.status),
    backends: now(views.backends),
    backend: now(views.backend),
    leader: now(views.leader),
    canary: now(views.canary),
    health: now(views.health),
    assignment: later(views.assignment),
    assignments: later(views.assignments),
    executors: later(views.executors),
    history: later(views.history),
    audit: later(views.audit),
    operation: later(views.operation),
    operations: later(views.operations),
  };
}
