import { type ReadonlySignal, signal } from "@preact/signals";
import { onAbort } from "../lib/abortable.ts";

/** The server's time in the browser, ticking once a second; times in milliseconds since the epoch. */
export interface TickingClock {
  readonly now: ReadonlySignal<number>;
  /** The server says that it is `iso` there. */
  sync(iso: string): void;
}

/** Starts at the server's `iso`, so that the first drawing equals the server's; ends with `signal`. */
export function createTickingClock(iso: string, stop: AbortSignal): TickingClock {
  const now = signal(Date.parse(iso));
  let offset = now.value - Date.now();
  const timer = setInterval(() => {
    if (!document.hidden) now.value = Date.now() + offset;
  }, 1000);
  onAbort(stop, () => clearInterval(timer));
  return {
    now,
    sync(said) {
      const at = Date.parse(said);
      if (Number.isNaN(at)) return;
      offset = at - Date.now();
    },
  };
}
