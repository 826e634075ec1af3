import { z } from "@hono/zod-openapi";
import { RELEASE_TIERS } from "../../controller/actions/action_kinds.ts";
import type { ReleasePreview } from "../../controller/actions/release_preview.ts";
import { schemaOf } from "../schema_of.ts";
import { assignmentSchema, problemSchema } from "../schemas.ts";

/** Headers of an action. */
export const actionHeaders = z.object({
  "idempotency-key": z.string().regex(/^[\x21-\x7e]{1,255}$/).optional().openapi({
    description: "Sent again with the same action it is the same operation, never a second one",
  }),
  "if-match": z.string().max(1_000).optional().openapi({
    description: "ETag of the target: refused with 412 when it has changed since",
  }),
});

/** A problem that says how things stand now. */
export const conflictSchema = problemSchema.extend({
  current: z.unknown(),
  operation: z.string().nullable(),
}).openapi("Conflict");

/** What giving an assignment up would do. */
export const releasePreviewSchema = schemaOf<ReleasePreview>()(
  z.object({
    tier: z.enum(RELEASE_TIERS),
    assignment: assignmentSchema,
    tag: z.string(),
    refused: z.string().nullable(),
    slot: z.enum(["none", "freed_at_once", "freed_when_executor_gone", "freed_when_job_ends"]),
    executor: z.object({
      name: z.string().nullable(),
      fate: z.enum(["none", "ends_by_itself", "deleted", "deleted_when_possible"]),
    }),
    identity: z.enum(["none", "deleted_with_executor"]),
    message: z.enum(["none", "removed"]),
    gitea: z.object({
      result: z.enum(["failure", "cancelled"]).nullable(),
      when: z.enum(["ended_already", "at_once", "when_its_runner_has_ended"]),
    }),
    text: z.array(z.string()).readonly(),
  }).openapi("ReleasePreview"),
);
