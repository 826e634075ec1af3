/** Asks Gitea for tasks now, once somebody can. */
export interface LateNudge {
  become(nudge: () => void): void;
  /** False while nothing fetches here. */
  nudge(): boolean;
}

/** Makes {@link LateNudge}; `leading` tells whether this process may still fetch. */
export function createLateNudge(leading: () => boolean): LateNudge {
  let current: (() => void) | null = null;
  return {
    become(nudge) {
      current = nudge;
    },
    nudge() {
      if (current === null || !leading()) return false;
      current();
      return true;
    },
  };
}
