import { z } from "@hono/zod-openapi";
import { AUDIT_RESULTS } from "../controller/actions/action_kinds.ts";
import { assignmentIdSchema, backendNameSchema, stateNameSchema } from "./schemas.ts";

/** No parameters. */
export const noInput = z.object({});

/** `limit` and `cursor`, as every list takes them. */
const pageQuery = z.object({
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

const exact = z.string().min(1).max(200).optional();

/** Filters of the list of operations. */
export const operationQuery = pageQuery.extend({
  target: exact.openapi({ description: "A backend, an assignment, or leader" }),
  state: z.enum(["running", "done", "failed", "undone"]).optional(),
});

/** Filters of the audit; texts are compared whole and without case. */
export const auditQuery = pageQuery.extend({
  actor: exact,
  action: exact,
  target: exact,
  result: z.enum(AUDIT_RESULTS).optional(),
});

/** Filters of the history. */
export const historyQuery = pageQuery.extend({
  backend: backendNameSchema.optional(),
  event: exact,
  assignment: assignmentIdSchema.optional(),
});

/** `:id` of an assignment. */
export const assignmentParams = z.object({ id: assignmentIdSchema });
/** `:name` of a backend. */
export const backendParams = z.object({ name: backendNameSchema });
/** `:name` of an executor. */
export const executorParams = z.object({
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/, "expected an executor's name"),
});
/** `:id` of an operation. */
export const operationParams = z.object({ id: z.string().min(1).max(200) });
