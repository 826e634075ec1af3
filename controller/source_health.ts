import type { Clock } from "../lib/clock.ts";
import type { SourceView } from "./views.ts";
import { iso } from "./view_of.ts";

/** How one of the servers around us has been answering. */
export interface SourceHealth {
  /** It answered. */
  ok(): void;
  /** It did not, or said no. */
  failed(error: unknown): void;
  view(): SourceView;
}

/** Makes a {@link SourceHealth} that knows nothing yet. */
export function createSourceHealth(clock: Clock): SourceHealth {
  let state: "up" | "down" | "unknown" = "unknown";
  let since: number | null = null;
  let heard: number | null = null;
  let lastError: string | null = null;
  const become = (next: "up" | "down") => {
    if (state !== next) since = clock.now();
    state = next;
  };
  return {
    ok() {
      become("up");
      heard = clock.now();
    },
    failed(error) {
      become("down");
      lastError = error instanceof Error ? error.message : String(error);
    },
    view: () => ({
      state,
      since: since === null ? null : iso(since),
      ageMs: heard === null ? null : clock.now() - heard,
      lastError,
    }),
  };
}

/** A source that this configuration does not use. */
export const UNUSED_SOURCE: SourceView = {
  state: "unused",
  since: null,
  ageMs: null,
  lastError: null,
};
