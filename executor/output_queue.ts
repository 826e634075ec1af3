/** The outputs of one job on their way to Gitea: every key once, large ones in several calls. */
export interface OutputQueue {
  readonly size: number;
  /** Bytes that were not accepted yet. */
  readonly unsentBytes: number;
  keys(): string[];
  /** Adds those that are new: as at Gitea the first value of a key stays. */
  add(outputs: Readonly<Record<string, string>>): void;
  /** What goes up with the next call; `isAll` when nothing is left after it. */
  next(): { readonly outputs: Readonly<Record<string, string>>; readonly isAll: boolean };
  /** These were accepted. */
  accepted(outputs: Readonly<Record<string, string>>): void;
  /**
   * These were too large together: the next call brings fewer. One by itself is given up; resolves
   * to it then.
   */
  tooLarge(
    outputs: Readonly<Record<string, string>>,
  ): { readonly name: string; readonly bytes: number } | undefined;
}

/** Of one call, so that it passes a reverse proxy that takes 1 MiB. */
const MAX_BYTES = 512 * 1024;

/** Makes an empty {@link OutputQueue}. */
export function createOutputQueue(): OutputQueue {
  const values = new Map<string, string>();
  const unsent = new Map<string, number>();
  let bound = MAX_BYTES;
  return {
    get size() {
      return values.size;
    },
    get unsentBytes() {
      return [...unsent.values()].reduce((sum, bytes) => sum + bytes, 0);
    },
    keys: () => [...values.keys()],
    add(outputs) {
      for (const [key, value] of Object.entries(outputs)) {
        if (values.has(key)) continue;
        values.set(key, value);
        unsent.set(key, bytesOf(key) + bytesOf(value));
      }
    },
    next() {
      const chosen: [string, string][] = [];
      let sum = 0;
      for (const [key, bytes] of unsent) {
        sum += bytes;
        if (sum > bound && chosen.length > 0) break;
        chosen.push([key, values.get(key) ?? ""]);
      }
      return { outputs: Object.fromEntries(chosen), isAll: chosen.length === unsent.size };
    },
    accepted(outputs) {
      for (const key of Object.keys(outputs)) unsent.delete(key);
    },
    tooLarge(outputs) {
      const keys = Object.keys(outputs);
      const [name] = keys;
      if (name === undefined) return undefined;
      const bytes = keys.reduce((sum, key) => sum + (unsent.get(key) ?? 0), 0);
      bound = Math.max(1, Math.floor(Math.min(bytes, bound) / 2));
      if (keys.length > 1) return undefined;
      unsent.delete(name);
      return { name, bytes };
    },
  };
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
