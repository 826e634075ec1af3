import type { Backend, Executor } from "../controller/backend.ts";
import type { AssignmentInfo } from "../controller/model/assignment_info.ts";
import { aborted } from "../lib/abortable.ts";

/**
 * A backend that does nothing, at once: executors are entries of a map. `bound` is called when an
 * identity is bound, which is when a real executor could claim its job.
 */
export function createNoOpBackend(bound: (info: AssignmentInfo) => void): Backend {
  const executors = new Map<string, Executor>();
  return {
    name: "pod",
    find: (name) => Promise.resolve(executors.get(name)),
    create({ name, metadata }) {
      const executor: Executor = {
        name,
        uid: name,
        phase: "running",
        metadata,
        createdAt: Date.now(),
        identityTarget: name,
        terminating: false,
        ended: null,
        terminal: false,
        node: null,
        waiting: null,
      };
      executors.set(name, executor);
      return Promise.resolve(executor);
    },
    bindIdentity(_executor, info) {
      bound(info);
      return Promise.resolve();
    },
    markTerminal: () => Promise.resolve(),
    list: () => Promise.resolve([...executors.values()]),
    async *watch({ signal }) {
      yield* [];
      await aborted(signal);
    },
    delete({ name }) {
      executors.delete(name);
      return Promise.resolve();
    },
  };
}
