import type { SignOuts, SignOutStore, StoredSignOuts } from "../../controller/access/sign_outs.ts";
import { QueueError } from "../../controller/queue.ts";
import { abortable, onAbort } from "../../lib/abortable.ts";

/** What all replicas of a test share, in memory. */
export interface FakeSignOutStore extends SignOutStore {
  /** While true everything waits, as it does for a NATS that is away; false lets it go on. */
  away(on: boolean): void;
  /** What stands there. */
  stored(): StoredSignOuts;
  /** Forgets everything, as a bucket that was deleted and made again. */
  lose(): void;
}

/** Makes {@link FakeSignOutStore}. */
export function createFakeSignOutStore(): FakeSignOutStore {
  const nothing: StoredSignOuts = { ended: new Map(), floor: 0, revision: 0 };
  const listeners = new Set<() => void>();
  let stored = nothing;
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  const tell = () => {
    for (const listener of [...listeners]) listener();
  };
  return {
    async read({ signal }) {
      await abortable(gate.promise, signal);
      return stored;
    },
    async write(list, { signal }) {
      await abortable(gate.promise, signal);
      if (list.revision !== stored.revision) {
        throw new QueueError("conflict", `Write: "${list.revision}" is not "${stored.revision}"`);
      }
      stored = { ...list, revision: list.revision + 1 };
      tell();
    },
    hint(listener, signal) {
      listeners.add(listener);
      onAbort(signal, () => listeners.delete(listener));
      listener();
    },
    away(on) {
      if (on) gate = Promise.withResolvers();
      else gate.resolve();
      if (!on) tell();
    },
    stored: () => stored,
    lose() {
      stored = nothing;
      tell();
    },
  };
}

/** Sign-outs of the only replica there is. */
export function createSoleSignOuts(): Pick<SignOuts, "has" | "end"> {
  const ended = new Set<string>();
  return {
    has: (hash) => ended.has(hash),
    end(hash) {
      ended.add(hash);
      return Promise.resolve("shared");
    },
  };
}
