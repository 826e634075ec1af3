import { createCondition } from "../lib/condition.ts";
import type { Demand } from "./queue.ts";
import type { AssignmentId } from "./model/ids.ts";
import { holdsSlot, type State } from "./model/state.ts";

/**
 * The slots of one backend. Who holds one follows from the assignments' states
 * ({@link holdsSlot}) and from the executors that nobody can account for; this only keeps the set at
 * hand, so there is no counter that could drift.
 */
export interface Pool extends Demand {
  /** Slots that may be used; an operator may change it. */
  capacity(): number;
  /** Assignments that hold a slot, in the order in which they got it. */
  holders(): ReadonlySet<AssignmentId>;
  /** Slots held by executors that cannot be read or verified. */
  unknown(): number;
  /** True if this assignment holds a slot, or could have one now. */
  admits(id: AssignmentId): boolean;
  /** Keeps room for a message that is being opened and may need a slot; dispose it when that is known. */
  reserve(): Disposable;
  /** Called with every new state of an assignment of this backend. */
  observe(id: AssignmentId, state: State): void;
  /** Called when the capacity, the unknown executors, or whether the pool is open, has changed. */
  refresh(): void;
}

/** Makes a {@link Pool}. `open` says whether new assignments may be admitted at all (not cordoned, recovered). */
export function createPool(
  options: { capacity(): number; open(): boolean; unknown?(): number },
): Pool {
  const holders = new Set<AssignmentId>();
  const change = createCondition();
  const unknown = options.unknown ?? (() => 0);
  let reserved = 0;
  /** Slots that nobody holds; a message that is being opened holds none yet. */
  const room = () => options.open() ? options.capacity() - holders.size - unknown() : 0;
  const pool: Pool = {
    capacity: options.capacity,
    holders: () => holders,
    unknown,
    free: () => Math.max(0, room() - reserved),
    admits: (id) => holders.has(id) || room() > 0,
    reserve() {
      reserved++;
      return {
        [Symbol.dispose]() {
          reserved--;
          change.notifyAll();
        },
      };
    },
    observe(id, state) {
      const holds = holdsSlot(state);
      if (holds === holders.has(id)) return;
      if (holds) holders.add(id);
      else holders.delete(id);
      change.notifyAll();
    },
    refresh: change.notifyAll,
    changed: change.wait,
  };
  return pool;
}
