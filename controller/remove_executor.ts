import type { Clock } from "../lib/clock.ts";
import type { Entry } from "./entry.ts";
import type { Worker } from "./worker.ts";

/** Between looks at an executor that is being deleted: many of them end at the same time. */
const GONE_POLL_MS = 1_000;
const GONE_POLL_MAX_MS = 5_000;
/** A deletion is asked for again when it has not helped for so long. */
const DELETE_AGAIN_MS = 15_000;

/**
 * Deletes the executor of an assignment; resolves when it is gone, which is when it cannot be found any
 * more: a backend may only have begun. Throws `BackendError` when it should be tried again, what `guard`
 * throws, or the signal's reason.
 */
export async function removeExecutor(
  worker: Pick<Worker, "remove" | "remains">,
  entry: Entry,
  { clock, guard }: { readonly clock: Clock; guard(): void },
  signal: AbortSignal,
): Promise<void> {
  let state = await worker.remove(entry, signal);
  let askedAt = clock.monotonic();
  for (let pollMs = GONE_POLL_MS; state === "leaving";) {
    await clock.sleep(pollMs, signal);
    guard();
    pollMs = Math.min(pollMs * 1.5, GONE_POLL_MAX_MS);
    if (clock.monotonic() - askedAt < DELETE_AGAIN_MS) {
      state = await worker.remains(entry, signal);
      continue;
    }
    state = await worker.remove(entry, signal);
    askedAt = clock.monotonic();
  }
}
