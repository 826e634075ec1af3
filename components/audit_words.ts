import { isObject } from "../lib/json_object.ts";

/** A value of the audit as words for people: `drain (by: ann, hold: false)`. `nothing` stands for null. */
export function auditWords(value: unknown, nothing: string): string {
  if (value === null) return nothing;
  if (typeof value === "string") return value;
  if (typeof value !== "object" || Array.isArray(value)) return JSON.stringify(value);
  return Object.entries(value).map(([name, each]) => {
    const text = auditWords(each, nothing);
    return isObject(each) ? `${name} (${text})` : `${name}: ${text}`;
  }).join(", ");
}
