/** Options of {@link eventually}. */
export interface EventuallyOptions {
  /** What is awaited, for the message. */
  readonly what: string;
  readonly timeoutMs?: number;
  readonly everyMs?: number;
}

/**
 * Asks again and again until `probe` gives something other than `undefined` or `false`, and resolves
 * to it. Throws an `Error` that names what was awaited, with the last failure, after the time-out.
 */
export async function eventually<T>(
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  { what, timeoutMs = 10_000, everyMs = 20 }: EventuallyOptions,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  let last: unknown;
  while (performance.now() < end) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  throw new Error(`Wait for ${what}: not within ${timeoutMs} ms`, { cause: last });
}
