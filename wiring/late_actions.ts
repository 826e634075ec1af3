import type { Actions } from "../controller/actions.ts";
import type { LeaderView } from "../controller/views.ts";

/** Actions that can be given later: pages are up before anything can be done. */
export interface LateActions extends Actions {
  become(actions: Actions): void;
}

/** Makes {@link LateActions}; while this process does not lead they are refused with who does. */
export function createLateActions(leader: () => LeaderView): LateActions {
  let current: Actions | null = null;
  return {
    become(actions) {
      current = actions;
    },
    retry(id, request, call) {
      const { leading, holder, self } = leader();
      if (current !== null && leading) return current.retry(id, request, call);
      const detail = holder !== null && holder !== self
        ? `Ask the leader: it is "${holder}"`
        : "Retry in a moment: this process does not lead yet";
      return Promise.resolve({ kind: "unavailable", detail });
    },
  };
}
