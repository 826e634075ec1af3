import type { Report } from "../e2e/report.ts";

/** Options of every suite that has parts, for `parseArgs`. */
export const PART_OPTIONS = {
  only: { type: "string" },
  list: { type: "boolean" },
} as const;

/** Arguments of the program; a `--` before them, which npm wants and Deno passes on, is none. */
export function suiteArgs(): string[] {
  return Deno.args.filter((arg) => arg !== "--");
}

/**
 * The parts that were asked for, all by default; null when `--list` has named them on `print` instead. Throws
 * for one that there is not.
 */
export function chooseParts(
  { only, list }: { readonly only?: string; readonly list?: boolean },
  names: readonly string[],
  print: (line: string) => void,
): readonly string[] | null {
  if (list) {
    print(names.join("\n"));
    return null;
  }
  const wanted = only?.split(",") ?? names;
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`No part "${unknown.join('", "')}": --list names them`);
  return wanted;
}

/** The whole number that an option gives. Throws a `TypeError` for any other text, and below `least`. */
export function numberOption(text: string, least = 0): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < least) {
    throw new TypeError(`Give a whole number from ${least} on: "${text}" is none`);
  }
  return value;
}

/** Throws unless this process may make cgroups. */
export function requireRoot(suite: string): void {
  if (Deno.uid() !== 0) throw new Error(`Run ${suite} as root: they make cgroups`);
}

/** Plays parts one after the other until the signal aborts; what one throws is a failure of it alone. */
export async function playParts<
  T extends { readonly report: Report; readonly signal: AbortSignal },
>(
  names: readonly string[],
  parts: Readonly<Record<string, (stage: T) => Promise<void>>>,
  stage: T,
): Promise<void> {
  for (const name of names) {
    stage.signal.throwIfAborted();
    await stage.report.attempt(`part "${name}"`, async () => await parts[name]?.(stage));
  }
}

/** Prints the last lines of a suite that began at `started`; its exit code. */
export function endSuite(
  report: Report,
  started: number,
  print: (line: string) => void,
): number {
  print(`took ${((performance.now() - started) / 1000).toFixed(0)} s`);
  print(`${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped`);
  return report.failed === 0 ? 0 : 1;
}

/** Prints a line whole, also where the process exits next. */
export function printLine(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
