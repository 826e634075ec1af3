/** Hides secret values in log rows. */
export interface Masks {
  /** Hides this value from now on; each line of it by itself. */
  add(value: string): void;
  /** The text with every hidden value replaced by `***`. */
  apply(text: string): string;
}

/** Masks for these values; empty ones hide nothing. */
export function createMasks(values: Iterable<string>): Masks {
  let hidden: readonly string[] = [];
  const add = (value: string) => {
    const lines = value.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "");
    // The longest first, so that a value that holds another one is hidden whole.
    hidden = [...new Set([...hidden, ...lines])].sort((a, b) => b.length - a.length);
  };
  for (const value of values) add(value);
  return {
    add,
    apply: (text) => hidden.reduce((row, value) => row.replaceAll(value, "***"), text),
  };
}
