import type { Clock } from "../../lib/clock.ts";
import type { ControlStore } from "../records.ts";

/** Between looks at who leads; a record write tells it too, but an idle process writes none. */
const EPOCH_MS = 5_000;

/**
 * Notices another leader also while there is nothing to write: told of it, or by looking. Ends when it has
 * called `onFenced`, or when the signal aborts.
 */
export async function watchEpoch(
  { control, clock, epoch, onFenced }: {
    readonly control: ControlStore;
    readonly clock: Clock;
    /** Epoch of this process. */
    epoch(): number;
    /** A newer epoch was seen: another controller leads. */
    onFenced(detail: string): void;
  },
  signal: AbortSignal,
): Promise<void> {
  const fencedBy = (leading: number) => {
    if (leading <= epoch()) return false;
    onFenced(`epoch ${leading} leads, ours is ${epoch()}`);
    return true;
  };
  control.watchEpoch((leading) => void fencedBy(leading), signal);
  let low = 0;
  while (!signal.aborted) {
    await clock.sleep(EPOCH_MS, signal).catch(() => {});
    const leading = await control.epoch({ signal }).catch(() => epoch());
    if (fencedBy(leading)) return;
    // Once may be the word of a replica of the bucket that lags behind.
    low = leading < epoch() ? low + 1 : 0;
    if (low > 1) {
      return onFenced(`epoch ${leading} is stored, ours is ${epoch()}: records are lost`);
    }
  }
}
