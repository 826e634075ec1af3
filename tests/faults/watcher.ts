import { systemClock } from "../../lib/clock.ts";

/** Looks at the API all the time. */
export interface Watcher extends AsyncDisposable {
  /** States in which an assignment was seen, in order. */
  statesOf(id: string): readonly string[];
  /** What should not be: waiting without a reason, more slots taken than there are. */
  readonly complaints: readonly string[];
}

interface Assignment {
  readonly id: string;
  readonly state: string;
  readonly reason: { readonly code: string; readonly detail: string } | null;
}

const WAITING = new Set(["stored", "parked", "admitted", "starting", "ready"]);
const EVERY_MS = 200;

/** Watches until disposed; while the controller is away there is nothing to see. */
export function createWatcher(get: <T>(path: string) => Promise<T>): Watcher {
  const stop = new AbortController();
  const seen = new Map<string, string[]>();
  const complaints = new Set<string>();
  const look = async () => {
    const page = await get<{ readonly items: readonly Assignment[] }>(
      "/api/v1/assignments?limit=200",
    );
    for (const { id, state, reason } of page.items) {
      const states = seen.get(id) ?? [];
      if (states.at(-1) !== state) states.push(state);
      seen.set(id, states);
      if (WAITING.has(state) && (reason === null || reason.detail === "")) {
        complaints.add(`${id} is ${state} without a reason`);
      }
    }
  };
  const watching = (async () => {
    while (!stop.signal.aborted) {
      await look().catch(() => {});
      await systemClock.sleep(EVERY_MS, stop.signal).catch(() => {});
    }
  })();
  return {
    statesOf: (id) => seen.get(id) ?? [],
    get complaints() {
      return [...complaints];
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}
