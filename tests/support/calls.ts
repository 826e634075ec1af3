import type { Call } from "../../controller/backend.ts";

/** Options of calls that nobody stops. */
export const call: Call = { signal: new AbortController().signal };

/**
 * Options of calls to real servers, each of which is given up by itself after so long: whatever waits
 * longer is a fault of its own, and no reason to wait for ever.
 */
export function callsWithin(timeoutMs: number): Call {
  return {
    get signal() {
      return AbortSignal.timeout(timeoutMs);
    },
  };
}
