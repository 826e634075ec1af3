import { abortable } from "../../lib/abortable.ts";

/** Options of {@link eventually}. */
export interface EventuallyOptions {
  /** What is awaited, for the message. */
  readonly what: string;
  readonly timeoutMs?: number;
  readonly everyMs?: number;
  /** How long one probe may take; what takes longer hangs. */
  readonly probeMs?: number;
}

/**
 * Asks again and again until `probe` gives something other than `undefined` or `false`, and resolves
 * to it. Throws an `Error` that names what was awaited, with the last failure, after the time-out; a
 * probe that does not answer is a failure, too.
 */
export async function eventually<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  { what, timeoutMs = 10_000, everyMs = 20, probeMs = 30_000 }: EventuallyOptions,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < end) {
    try {
      const value = await within(probe, probeMs);
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  throw new Error(`Wait for ${what}: not within ${timeoutMs} ms`, { cause: last });
}

async function within<T>(probe: () => T | Promise<T>, ms: number): Promise<T> {
  const limit = new AbortController();
  const hangs = new Error(`Ask for it: no answer within ${ms} ms`);
  const timer = setTimeout(() => limit.abort(hangs), ms);
  try {
    return await abortable(Promise.try(probe), limit.signal);
  } finally {
    clearTimeout(timer);
  }
}
