import type { ReadonlySignal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";

/** The time that ages are counted to; the server gives a fixed one, the browser one that ticks. */
export const NowContext = createContext<ReadonlySignal<number> | null>(null);

/** Milliseconds since the epoch; a component that reads it is drawn again as it ticks. */
export function useNow(): number {
  const now = useContext(NowContext);
  if (now === null) throw new TypeError("Provide a time around the component");
  return now.value;
}
