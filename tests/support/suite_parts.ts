import { parseArgs, type ParseArgsConfig } from "node:util";
import type { Report } from "../e2e/report.ts";

/** Options of every suite that has parts, for {@link suiteOptions}. */
export const PART_OPTIONS = {
  only: { type: "string" },
  list: { type: "boolean" },
} as const;

/** Arguments of the program; a `--` before them, which npm wants and Deno passes on, is none. */
export function suiteArgs(): string[] {
  return Deno.args.filter((arg) => arg !== "--");
}

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * The values of a suite's options. For `--help`, and for what is none of them, prints those that there are
 * and ends the process: nothing has been started yet.
 */
export function suiteOptions<const O extends Options>(
  options: O,
  args: readonly string[] = suiteArgs(),
): ReturnType<typeof parseArgs<{ args: string[]; options: O }>>["values"] {
  const help = args.includes("--help");
  try {
    if (!help) return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    printLine(error.message);
  }
  printLine(`${optionsText(options)}\nCONTRIBUTING.md says what the suite shows and needs`);
  return Deno.exit(help ? 0 : 2);
}

/** One line that names every option, those with a value with its default. */
export function optionsText(options: Options): string {
  const words = Object.entries(options).map(([name, { type, default: usual }]) =>
    `--${name}${type === "boolean" ? "" : `=${usual === undefined ? "..." : `${usual}`}`}`
  );
  return `Options: ${words.join(", ")}`;
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
