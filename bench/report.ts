/** A bound that a row is held to. */
export interface Bound {
  readonly kind: "at_least" | "at_most";
  readonly value: number;
  /** What is bounded: the ratio of ours to the reference, or our own figure. */
  readonly of: "ratio" | "ours";
}

/** One line of the table: our figure beside its reference from the same run. */
export interface Row {
  readonly what: string;
  readonly unit: string;
  /** What the reference is, for people. */
  readonly referenceName: string;
  readonly reference: number;
  readonly ours: number;
  /** Ours by the reference where it is not simply that: the median over rounds that took turns. */
  readonly ratio?: number;
  readonly bound: Bound;
  /** Spread, counts, and whatever a reader needs to judge the figures. */
  readonly notes: readonly string[];
}

/** True when the row keeps its bound. */
export function holds(row: Row): boolean {
  const value = row.bound.of === "ratio" ? ratioOf(row) : row.ours;
  if (!Number.isFinite(value)) return false;
  return row.bound.kind === "at_least" ? value >= row.bound.value : value <= row.bound.value;
}

function ratioOf(row: Row): number {
  return row.ratio ?? row.ours / row.reference;
}

/** The rows as a Markdown table with their notes below; ends with a newline. */
export function formatReport(rows: readonly Row[]): string {
  const head = ["what", "unit", "reference", "ours", "ratio", "bound", "verdict"];
  const body = rows.map((row) => [
    row.what,
    row.unit,
    `${figure(row.reference)} (${row.referenceName})`,
    figure(row.ours),
    figure(ratioOf(row)),
    `${row.bound.of} ${row.bound.kind === "at_least" ? ">=" : "<="} ${row.bound.value}`,
    holds(row) ? "kept" : "MISSED",
  ]);
  const widths = head.map((name, column) =>
    Math.max(name.length, ...body.map((cells) => cells[column]?.length ?? 0))
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |\n`;
  const notes = rows.flatMap(({ what, notes }) => notes.map((note) => `- ${what}: ${note}\n`));
  return line(head) + rule + body.map(line).join("") + "\n" + notes.join("");
}

/** Three significant digits, no exponent. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "none";
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 4));
}

/** The value below which `share` (0 to 1) of the samples lie; NaN without samples. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
}

/** `p50 1.2, p90 3.4, min 1.0, max 3.9 (n=20)`. */
export function spread(samples: readonly number[]): string {
  const at = (share: number) => figure(percentile(samples, share));
  return `p50 ${at(0.5)}, p90 ${at(0.9)}, min ${at(0)}, max ${at(1)} (n=${samples.length})`;
}
