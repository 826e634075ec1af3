import type { Logger } from "../lib/logger.ts";
import type { Backend, Executor } from "./backend.ts";
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
  /**
   * `unknown` ones keep a slot until they are gone: they may be running a job of ours. `foreign` ones
   * are another's, or prove to be none of ours. `forgotten` ones were unknown until an operator gave
   * their slot to others.
   */
  readonly ownership: "foreign" | "unknown" | "forgotten";
  readonly why: string;
}

/** Executors without an assignment: leftovers of ours are deleted, all others only shown. */
export interface Strangers {
  /** Judges an executor that no live assignment claims; looks first whether it is still there. */
  meet(executor: Executor, signal: AbortSignal): Promise<void>;
  /** Shows it as it was judged by whoever could tell. */
  show(stranger: Stranger): void;
  forget(name: ExecutorName): void;
  /** Drops those that the backend no longer has. */
  keepOnly(names: ReadonlySet<ExecutorName>): void;
  list(): readonly Stranger[];
  /** How many keep a slot. */
  unknown(): number;
}

/** Makes the {@link Strangers} of one backend. `onChange` is called when the list has changed. */
export function createStrangers(deps: {
  readonly backend: Backend;
  readonly logger: Logger;
  identify(executor: Executor): Identified;
  /** True if it was made for an assignment that has ended here: a deletion that did not come through. */
  isLeftover(executor: Executor): Promise<boolean>;
  /** Throws when this process may not act any more. */
  guard(): void;
  onChange(): void;
}): Strangers {
  const { backend } = deps;
  const strangers = new Map<ExecutorName, Stranger>();

  const show = (stranger: Stranger) => {
    const { executor, ownership, why } = stranger;
    const known = strangers.get(executor.name);
    strangers.set(executor.name, stranger);
    if (known?.ownership === ownership && known.executor.uid === executor.uid) return;
    deps.logger.warn("executor without assignment", {
      executor: executor.name,
      ownership,
      detail: why,
    });
    deps.onChange();
  };
  const forget = (name: ExecutorName) => {
    if (strangers.delete(name)) deps.onChange();
  };

  return {
    show,
    forget,
    async meet(seen, signal) {
      const known = strangers.get(seen.name);
      const isOver = seen.terminal && seen.ended !== null;
      if (known?.executor.uid === seen.uid && !isOver) return show({ ...known, executor: seen });
      // What a list or a late change says may be over by now.
      const executor = await backend.find(seen.name, { signal });
      if (executor === undefined) return forget(seen.name);
      if (await deps.isLeftover(executor)) {
        deps.guard();
        await backend.delete(executor, { signal });
        return forget(seen.name);
      }
      show({ executor, ...judge(deps.identify(executor)) });
    },
    keepOnly(names) {
      for (const name of [...strangers.keys()]) if (!names.has(name)) forget(name);
    },
    list: () => [...strangers.values()],
    unknown() {
      let count = 0;
      for (const { ownership } of strangers.values()) if (ownership === "unknown") count++;
      return count;
    },
  };
}

function judge(identified: Identified): Omit<Stranger, "executor"> {
  return identified.kind === "ours"
    ? {
      ownership: "unknown",
      why: "there is no record of it, so nobody can tell whether it is ours",
    }
    : { ownership: identified.kind, why: identified.why };
}
