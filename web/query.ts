import { z } from "@hono/zod-openapi";
import { assignmentIdSchema, backendNameSchema, stateNameSchema } from "./schemas.ts";

/** No parameters. */
export const noInput = z.object({});

/** `limit` and `cursor`, as every list takes them. */
export const pageQuery = z.object({
  limit: z.coerce.number<string>().int().min(1).max(500).default(50)
    .openapi({ description: "How many items at most" }),
  cursor: z.string().regex(/^[A-Za-z0-9_-]{1,500}$/, "expected a nextCursor of an earlier page")
    .nullable().default(null).openapi({ description: "nextCursor of the page before" }),
});

/** A page of `item`. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({
    items: z.array(item).readonly(),
    nextCursor: z.string().nullable(),
    total: z.int().min(0),
  });
}

/** Filters of the list of assignments. */
export const assignmentQuery = pageQuery.extend({
  backend: backendNameSchema.optional(),
  state: stateNameSchema.optional(),
  repository: z.string().min(1).max(300).optional()
    .openapi({ description: "owner/name, compared without case", example: "acme/web" }),
});

/** Filters of the list of executors. */
export const executorQuery = pageQuery.extend({
  backend: backendNameSchema.optional(),
  recovered: z.stringbool({ truthy: ["true"], falsy: ["false"], case: "sensitive" }).optional()
    .openapi({ type: "boolean" }),
});

/** `:id` of an assignment. */
export const assignmentParams = z.object({ id: assignmentIdSchema });
/** Why somebody does something. */
export const noteBody = z.object({
  note: z.string().max(500).openapi({ description: "Why; it goes into the log" }),
});
/** The same from a form, which may leave it out. */
export const noteForm = z.object({ note: z.string().max(500).default("") });
/** `:name` of a backend. */
export const backendParams = z.object({ name: backendNameSchema });
/** `:id` of an operation. */
export const operationParams = z.object({ id: z.string().min(1).max(200) });
/** Variable to value. */
export const configSchema = z.record(z.string(), z.string().nullable());
