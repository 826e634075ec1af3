import { redactFields, redactText } from "./redact.ts";

/** One record, before it is made safe. */
export interface LogEntry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: "DEBUG" | "INFO" | "WARN" | "ERROR";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const RESERVED = new Set(["time", "level", "msg"]);
/** What JSON leaves as it is, but a terminal or a careless reader of lines obeys. */
const DANGEROUS = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g;

/**
 * `{"time":...,"level":...,"msg":...,<fields>}` and a newline. A field of one of the first three names
 * gets a `_` behind it, so that it cannot take their place.
 */
export function formatJson(entry: LogEntry): string {
  const record: Record<string, unknown> = {
    time: new Date(entry.at).toISOString(),
    level: entry.level,
    msg: redactText(entry.message),
  };
  for (const [key, value] of Object.entries(redactFields(entry.fields))) {
    const name = RESERVED.has(key) ? `${key}_` : key;
    Object.defineProperty(record, name, { value, enumerable: true, configurable: true });
  }
  return `${escape(JSON.stringify(record))}\n`;
}

const COLOURS = { DEBUG: 90, INFO: 36, WARN: 33, ERROR: 31 } as const;
const MESSAGE_WIDTH = 28;

/** `12:04:05.678 INFO  assignment transition   event=received backend=pod`, for people. */
export function formatPretty(entry: LogEntry, options: { readonly colours: boolean }): string {
  const paint = (code: number, text: string) =>
    options.colours ? `\u001b[${code}m${text}\u001b[0m` : text;
  const time = paint(90, new Date(entry.at).toISOString().slice(11, 23));
  const level = paint(COLOURS[entry.level], entry.level.padEnd(5));
  const fields = Object.entries(redactFields(entry.fields)).flatMap(([key, value]) =>
    value === undefined || value === null || value === ""
      ? []
      : [`${paint(90, `${word(key)}=`)}${paint(key === "error" ? 31 : 0, word(value))}`]
  );
  const message = escape(JSON.stringify(redactText(entry.message)).slice(1, -1));
  const padded = fields.length === 0 ? message : message.padEnd(MESSAGE_WIDTH);
  return `${[`${time} ${level}`, padded, ...fields].join(" ")}\n`;
}

/** A value as one word: quoted as JSON unless it is plain. */
function word(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? String(value);
  const plain = typeof value !== "string" || /^[\p{L}\p{N}_.:\/@+,-]+$/u.test(text);
  return escape(plain ? text : JSON.stringify(text));
}

function escape(text: string): string {
  return text.replace(DANGEROUS, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
