import type { Change, Views } from "../controller/views/views.ts";
import { onAbort } from "../lib/abortable.ts";

/** Views that can be replaced: pages are up before the servers they tell of are. */
export interface LateViews extends Views {
  /**
   * From now on everything is read from `views`; subscribers move over, and are told by a change of
   * `leader`: what they have read before is another's word, of whose changes they hear no more.
   */
  become(views: Views): void;
}

/** Makes {@link LateViews} that begin with `first`. */
export function createLateViews(first: Views): LateViews {
  let current = first;
  const listeners = new Map<(change: Change) => void, AbortSignal>();
  let generation = new AbortController();
  return {
    become(views) {
      const old = current.leader();
      generation.abort();
      generation = new AbortController();
      current = views;
      for (const [listener, signal] of listeners) {
        views.subscribe(listener, AbortSignal.any([signal, generation.signal]));
        listener({ kind: "leader", old, new: views.leader() });
      }
    },
    status: () => current.status(),
    backends: () => current.backends(),
    backend: (name) => current.backend(name),
    hour: (name) => current.hour(name),
    assignments: (query) => current.assignments(query),
    assignment: (id) => current.assignment(id),
    executors: (query) => current.executors(query),
    leader: () => current.leader(),
    canary: () => current.canary(),
    history: (query) => current.history(query),
    audit: (query) => current.audit(query),
    operation: (id) => current.operation(id),
    operations: (query) => current.operations(query),
    health: () => current.health(),
    recheck: (signal) => current.recheck(signal),
    config: () => current.config(),
    subscribe(listener, signal) {
      if (signal.aborted) return;
      listeners.set(listener, signal);
      onAbort(signal, () => listeners.delete(listener));
      current.subscribe(listener, AbortSignal.any([signal, generation.signal]));
    },
  };
}
