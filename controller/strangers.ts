import type { Logger } from "../lib/logger.ts";
import type { Backend, Executor, ExecutorChange } from "./backend.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { ExecutorName } from "./model/ids.ts";

/** What an executor's metadata says about whose it is. */
export type Identified =
  | { readonly kind: "ours"; readonly info: AssignmentInfo }
  /** Another instance's: left alone. */
  | { readonly kind: "foreign"; readonly why: string }
  /** Our labels, but it cannot be read or verified: shown, never adopted, never in others' way. */
  | { readonly kind: "unknown"; readonly why: string };

/** An executor that belongs to no assignment we know. */
export interface Stranger {
  readonly executor: Executor;
  readonly ownership: "ours" | "foreign" | "unknown";
  readonly why: string;
}

/** Executors without an assignment: leftovers of ours are deleted once ended, all others only shown. */
export interface Strangers {
  /** Judges an executor that no live assignment claims. */
  look(change: ExecutorChange, signal: AbortSignal): Promise<void>;
  forget(name: ExecutorName): void;
  /** Drops those that the backend no longer has. */
  keepOnly(names: ReadonlySet<ExecutorName>): void;
  list(): readonly Stranger[];
}

/** Makes the {@link Strangers} of one backend. */
export function createStrangers(deps: {
  readonly backend: Backend;
  readonly logger: Logger;
  identify(executor: Executor): Identified;
}): Strangers {
  const strangers = new Map<ExecutorName, Stranger>();
  return {
    async look({ name, executor }, signal) {
      if (executor === null) {
        strangers.delete(name);
        return;
      }
      const identified = deps.identify(executor);
      if (identified.kind === "ours" && executor.terminal && executor.ended !== null) {
        // Its assignment is over and forgotten: the last deletion did not come through.
        await deps.backend.delete(executor, { signal });
        strangers.delete(name);
        return;
      }
      if (!strangers.has(name)) {
        deps.logger.warn("executor without assignment", {
          executor: name,
          ownership: identified.kind,
          detail: identified.kind === "ours" ? "no assignment is known" : identified.why,
        });
      }
      strangers.set(name, {
        executor,
        ownership: identified.kind,
        why: identified.kind === "ours" ? "no assignment of this name is known" : identified.why,
      });
    },
    forget: (name) => void strangers.delete(name),
    keepOnly(names) {
      for (const name of [...strangers.keys()]) if (!names.has(name)) strangers.delete(name);
    },
    list: () => [...strangers.values()],
  };
}
