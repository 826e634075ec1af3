import { QueueError } from "../../controller/queue.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";

/** A JSON object as the server sent it, or as somebody has stored it. */
export type Json = Readonly<Record<string, unknown>>;

/** Reads the text of a message's JSON object; throws `QueueError` for anything else. */
export function decodeJson(data: Uint8Array): Json {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    if (typeof value === "object" && value !== null) return { ...value };
  } catch {
    // Told below, like every other text that is no object.
  }
  throw new QueueError("unavailable", "Read NATS' answer: it is no JSON object");
}

/** A value as JSON in UTF-8. */
export function encodeJson(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** The text itself; null for anything else. */
export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** The number itself; null for anything else. */
export function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

/** A text of an object; "" when it is not there. */
export function textAt(json: Json, name: string): string {
  return textOf(json[name]) ?? "";
}

/** A number of an object; 0 when it is not there. */
export function numberAt(json: Json, name: string): number {
  return numberOf(json[name]) ?? 0;
}

/** An object of an object; empty when it is not there. */
export function objectAt(json: Json, name: string): Json {
  return objectOrEmpty(json[name]);
}
