import type { z } from "@hono/zod-openapi";

/** `T` without `readonly` at any depth; branded strings stay as they are. */
type Mutable<T> = T extends string ? T
  : T extends readonly (infer U)[] ? Mutable<U>[]
  : T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> }
  : T;

/** `true` only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

/**
 * Returns a function that takes a zod schema and gives it back, and that compiles only if the schema
 * describes exactly `View` (`readonly` aside).
 */
export function schemaOf<View>(): <S extends z.ZodType>(
  schema: Same<Mutable<z.output<S>>, Mutable<View>> extends true ? S : never,
) => S {
  return (schema) => schema;
}
