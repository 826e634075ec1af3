import type { Call } from "../../controller/backend.ts";
import { QueueError } from "../../controller/queue.ts";
import type { LeaderKey, LeaderNote } from "../../controller/leadership/solo_leader.ts";
import { abortable, onAbort } from "../../lib/abortable.ts";

/** The leader's key in memory, shared by several controllers. */
export interface FakeLeaderKey {
  /** The key as the process of this name reaches it. */
  seenBy(self: string): LeaderKey;
  /** Its methods wait while it is away for that process. */
  away(self: string, away: boolean): void;
  value(): LeaderNote | undefined;
}

/** Makes a {@link FakeLeaderKey}. */
export function createFakeLeaderKey(): FakeLeaderKey {
  let current: { readonly value: LeaderNote; readonly revision: number } | undefined;
  let revision = 0;
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const listeners = new Map<() => void, string>();
  const reach = async (self: string, { signal }: Call) => {
    signal.throwIfAborted();
    await Promise.resolve();
    for (let gate = gates.get(self); gate !== undefined; gate = gates.get(self)) {
      await abortable(gate.promise, signal);
    }
    signal.throwIfAborted();
  };
  const tell = () => {
    for (const [listener, self] of listeners) if (!gates.has(self)) listener();
  };
  return {
    value: () => current?.value,
    away(self, away) {
      if (away) return void gates.set(self, Promise.withResolvers());
      const gate = gates.get(self);
      gates.delete(self);
      gate?.resolve();
      for (const [listener, of] of listeners) if (of === self) listener();
    },
    seenBy: (self) => ({
      async read(call) {
        await reach(self, call);
        return current;
      },
      async write(note, over, call) {
        await reach(self, call);
        if ((current?.revision ?? 0) !== over) {
          throw new QueueError("conflict", `Write the leader's key: not revision ${over}`);
        }
        current = { value: note, revision: ++revision };
        tell();
        return revision;
      },
      async remove(over, call) {
        await reach(self, call);
        if (current?.revision !== over) return;
        current = undefined;
        tell();
      },
      watch(listener, signal) {
        if (signal.aborted) return;
        listeners.set(listener, self);
        onAbort(signal, () => listeners.delete(listener));
      },
    }),
  };
}
