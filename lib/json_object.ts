/** True for a JSON object: no array, not null. Its values are not looked at. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object itself; an empty one for anything else. */
export function objectOrEmpty(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/**
 * A property of an object, for names that come from outside; undefined for anything else, and for
 * what every object inherits (`constructor`).
 */
export function ownProperty(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}
