import { objectOrEmpty } from "../../lib/json_object.ts";
import { Secret } from "../../lib/secret.ts";

/**
 * Turns any value into JSON that holds no secret: by type (`Secret`, bytes), by key, and by pattern
 * in every text, messages of errors included. Never throws; everything is bounded.
 */

const REDACTED = "[redacted]";
const MAX_TEXT = 8192;
const MAX_ITEMS = 100;
const MAX_DEPTH = 6;
const MAX_CAUSES = 8;

const SECRET_KEY =
  /token|capabilit|authorization|bearer|passw|secret|cookie|credential|private_?key|api_?key|^environment$|^env$/i;

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|$)/g, REDACTED],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?/g, REDACTED],
  [/\b(bearer|basic|token) +[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${REDACTED}`],
  [/\b[0-9a-fA-F]{40}\b/g, REDACTED],
  [/(\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^/@\s"']{1,512}@/gi, "$1***@"],
  [
    /(\b[A-Za-z0-9_-]*(?:token|capability|password|secret|api_?key)["']?\s*[=:]\s*["']?)[^\s"'&,;}]{4,}/gi,
    `$1${REDACTED}`,
  ],
];

/** The text without what looks like a credential, cut to 8 KiB. */
export function redactText(text: string): string {
  let plain = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text;
  for (const [pattern, replacement] of PATTERNS) plain = plain.replace(pattern, replacement);
  return plain;
}

/** Fields ready for JSON; `undefined` ones are left out. */
export function redactFields(
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return objectOrEmpty(redactValue(fields, 0, new Set()));
}

/** Messages of an error and its causes, outermost first: `publish: connect: refused`. */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && current !== undefined && current !== null; depth++) {
    const text = textOf(current);
    // Many errors quote their cause already.
    if (!(parts.at(-1) ?? "").includes(text)) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return redactText(parts.join(": "));
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : describe(error);
  const text = error.message || error.name;
  if (!(error instanceof AggregateError)) return text;
  const inner = error.errors.slice(0, 5).map((one: unknown) => errorText(one));
  return `${text} (${inner.join("; ")})`;
}

function describe(value: unknown): string {
  try {
    return JSON.stringify(redactValue(value, 0, new Set())) ?? String(value);
  } catch {
    return "[unprintable]";
  }
}

function redactValue(value: unknown, depth: number, above: ReadonlySet<object>): unknown {
  switch (typeof value) {
    case "string":
      return redactText(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
    case "undefined":
      return value;
    case "bigint":
      return String(value);
    case "symbol":
    case "function":
      return `[${typeof value}]`;
    case "object":
      return value === null ? null : redactObject(value, depth, above);
  }
}

function redactObject(value: object, depth: number, above: ReadonlySet<object>): unknown {
  if (value instanceof Secret) return "[secret]";
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    return `[${value.byteLength} bytes]`;
  }
  if (value instanceof Error) return errorText(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof URL) return redactText(value.href);
  if (value instanceof RegExp) return String(value);
  if (above.has(value)) return "[circular]";
  if (depth >= MAX_DEPTH) return "[too deep]";
  const around = new Set([...above, value]);
  if (Array.isArray(value) || value instanceof Set) {
    return bounded([...value]).map((item) => redactValue(item, depth + 1, around) ?? null);
  }
  if (value instanceof Map) return redactEntries([...value], depth, around);
  return redactEntries(ownEntries(value), depth, around);
}

function redactEntries(
  entries: readonly (readonly [unknown, unknown])[],
  depth: number,
  above: ReadonlySet<object>,
): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, value] of bounded(entries)) {
    const key = redactText(String(name));
    const harmless = value === null || value === undefined || typeof value === "number" ||
      typeof value === "boolean" || typeof value === "bigint";
    const redacted = SECRET_KEY.test(key) && !harmless && !(value instanceof Secret)
      ? REDACTED
      : redactValue(value, depth + 1, above);
    // Not by assignment: `__proto__` is a key like any other.
    Object.defineProperty(plain, key, { value: redacted, enumerable: true, configurable: true });
  }
  return plain;
}

function ownEntries(value: object): [string, unknown][] {
  return Object.keys(value).map((key) => {
    try {
      return [key, Reflect.get(value, key)];
    } catch {
      return [key, "[unreadable]"];
    }
  });
}

function bounded<T>(items: readonly T[]): readonly T[] {
  return items.length > MAX_ITEMS ? items.slice(0, MAX_ITEMS) : items;
}
