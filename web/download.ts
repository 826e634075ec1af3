import type { Page, PageQuery } from "../controller/views/views.ts";
import type { RouteContext } from "./route_context.ts";

/** Rows of a file at most: newer ones come first, and filters reach further back. */
const MOST_ROWS = 10_000;
const PAGE = 500;

/** The list from its newest row on, at most 10,000 rows. */
export async function readAll<T>(read: (query: PageQuery) => Promise<Page<T>>): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await read({ limit: PAGE, cursor });
    rows.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null && rows.length < MOST_ROWS);
  return rows.slice(0, MOST_ROWS);
}

/** The rows as a JSON file to be kept. */
export function jsonFile(name: string, value: unknown, { now }: Pick<RouteContext, "now">) {
  return file(
    `${JSON.stringify(value, null, 2)}\n`,
    "application/json",
    `${name}-${stamp(now)}.json`,
  );
}

/** The rows as CSV (RFC 4180) to be kept; the first line names the columns. */
export function csvFile(
  name: string,
  rows: readonly object[],
  columns: readonly string[],
  { now }: Pick<RouteContext, "now">,
): Response {
  const lines = rows.map((row) => columns.map((column) => cell(Reflect.get(row, column))));
  const text = [columns, ...lines].map((line) => `${line.join(",")}\r\n`).join("");
  return file(text, "text/csv; charset=utf-8", `${name}-${stamp(now)}.csv`);
}

/**
 * One cell. What begins like a formula gets an apostrophe before it, so that no program for tables
 * computes what somebody wrote into a branch's name.
 */
function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string"
    ? value
    : typeof value === "object"
    ? JSON.stringify(value)
    : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function file(text: string, type: string, name: string): Response {
  return new Response(text, {
    headers: {
      "content-type": type,
      "content-disposition": `attachment; filename="${name}"`,
      "cache-control": "no-store",
    },
  });
}

/** `20270115T080000Z`. */
function stamp(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d+/g, "");
}
