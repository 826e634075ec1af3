import { errorText } from "../lib/error_text.ts";
import type { Fields, Logger } from "../lib/logger.ts";

/** As in the controller's log. */
type Level = "DEBUG" | "INFO" | "WARN" | "ERROR";

/**
 * JSON lines `{time, level, msg, ...fields}` through `write`, one call per line. An `Error` in a
 * field becomes its message with those of its causes. Never throws: a field that is not JSON is
 * replaced by a note.
 */
export function createJsonLogger(
  write: (line: string) => void,
  options: { readonly now: () => number; readonly fields?: Fields; readonly debug?: boolean },
): Logger {
  const log = (level: Level, msg: string, fields?: Fields) => {
    const head = { time: new Date(options.now()).toISOString(), level, msg };
    write(encode({ ...head, ...options.fields, ...fields }, head) + "\n");
  };
  return {
    debug: (message, fields) => options.debug === true ? log("DEBUG", message, fields) : undefined,
    info: (message, fields) => log("INFO", message, fields),
    warn: (message, fields) => log("WARN", message, fields),
    error: (message, fields) => log("ERROR", message, fields),
    child: (fields) =>
      createJsonLogger(write, { ...options, fields: { ...options.fields, ...fields } }),
  };
}

function encode(record: Fields, head: Fields): string {
  try {
    return JSON.stringify(record, (_key, value) => {
      if (value instanceof Error) return errorText(value);
      return typeof value === "bigint" ? String(value) : value;
    });
  } catch {
    return JSON.stringify({ ...head, fields: "not JSON" });
  }
}
