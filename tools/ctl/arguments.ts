import { parseAssignmentId } from "../../controller/model/ids.ts";
import { type CommandUsage, COMMON_OPTIONS, UsageError } from "./usage.ts";

/** A command line that was read. */
export interface Line {
  readonly command: string;
  readonly args: readonly string[];
  /** Options with a value. */
  readonly text: Readonly<Record<string, string | undefined>>;
  /** Options without one that are there. */
  readonly flags: ReadonlySet<string>;
}

const WAIT_MS = 3_600_000;

/** Throws `UsageError` unless the line has every argument, and none and no option that `usage` does not. */
export function checkLine({ command, args, text, flags }: Line, usage: CommandUsage): void {
  const taken: ReadonlySet<string> = new Set([...usage.options, ...COMMON_OPTIONS]);
  const refused = [...Object.keys(text), ...flags].filter((name) => !taken.has(name));
  if (refused.length > 0) {
    const own = usage.options.map((name) => `--${name}`).join(" ");
    throw new UsageError(
      `Leave out --${refused.join(", --")}: "${command}" takes ${own === "" ? "no options" : own}`,
    );
  }
  const names = usage.args.join(" ");
  if (args.length > usage.args.length) {
    const extra = args.slice(usage.args.length).join(" ");
    throw new UsageError(`Leave out "${extra}": "${command}" takes ${names || "no arguments"}`);
  }
  if (args.length < usage.args.length || args.includes("")) {
    throw new UsageError(`Give "${command}" all it needs: ${names}`);
  }
}

/** How long to wait, in milliseconds; an hour unless it was given. */
export function timeoutOf(text: string | undefined): number {
  if (text === undefined) return WAIT_MS;
  const ms = durationOf(text);
  if (ms === null) throw new UsageError(`Give --timeout as 90s, 30m or 2h: "${text}" is none`);
  return ms;
}

/** The argument at `at` of a line that was checked. */
export function argument({ args }: Line, at: number): string {
  return args[at] ?? "";
}

/** The backend that the first argument names. */
export function backendOf(line: Line): string {
  const given = argument(line, 0);
  if (given !== "pod" && given !== "vm") {
    throw new UsageError(`Choose a backend, pod or vm: there is no "${given}"`);
  }
  return given;
}

/** The assignment that the first argument names, by its id or its task's number alone. */
export function idOf(line: Line): string {
  const given = argument(line, 0);
  const id = parseAssignmentId(/^\d+$/.test(given) ? `gitea-task-${given}` : given);
  if (id === undefined) throw new UsageError(`Give a task's number or id: "${given}" is neither`);
  return id;
}

/** The options of these names as a query, empty when none was given. */
export function queryOf({ text }: Line, names: readonly string[]): string {
  const query = new URLSearchParams();
  for (const name of names) {
    const value = text[name];
    if (value !== undefined) query.set(name, value);
  }
  return query.size === 0 ? "" : `?${query}`;
}

/** The header of a condition; none without a tag. */
export function ifMatch(tag: string | undefined): Readonly<Record<string, string>> {
  return tag === undefined ? {} : { "if-match": tag };
}

/** Slots of a backend; null for `default`. */
export function slotsOf(text: string): number | null {
  if (text === "default") return null;
  if (!/^\d{1,5}$/.test(text)) throw new UsageError(`Give slots as a number: "${text}" is none`);
  return Number(text);
}

/** The field of a deadline: a duration from now or a time; none when it was not given. */
export function deadlineOf(text: string | undefined): Readonly<Record<string, unknown>> {
  if (text === undefined) return {};
  const ms = durationOf(text);
  if (ms !== null) return { deadlineSeconds: Math.max(1, Math.round(ms / 1_000)) };
  if (Number.isNaN(Date.parse(text))) {
    throw new UsageError(`Give --deadline as 30m, 2h or a time: "${text}" is none`);
  }
  return { deadline: new Date(text).toISOString() };
}

/** Milliseconds of 90s, 30m, 2h or 1d; null for anything else. */
function durationOf(text: string): number | null {
  const match = /^(\d{1,6})(s|m|h|d)$/.exec(text);
  if (match === null) return null;
  const unit = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] ?? ""] ?? NaN;
  return Number(match[1]) * unit;
}
