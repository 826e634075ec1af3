import { z } from "@hono/zod-openapi";
import { RELEASE_TIERS, STRANGER_TIERS, VM_LABELS } from "../../controller/actions/action_kinds.ts";
import { assignmentIdSchema, backendNameSchema } from "../schemas.ts";

// Bodies of actions: of the JSON API, where everything but the note may be left out, and of forms,
// whose fields are texts and whose empty fields mean nothing.

const MAX_CAPACITY = 10_000;
const DAY_MS = 86_400_000;

const note = z.string().max(500).openapi({ description: "Why; it goes into the audit" });
const seconds = z.int().min(1).max(30 * DAY_MS / 1_000);

/** `{note}`. */
export const noteBody = z.object({ note });

/** A drain: one of `deadline` and `deadlineSeconds`, or neither. */
export const drainBody = z.object({
  note,
  hold: z.boolean().default(false)
    .openapi({ description: "Keep stored jobs waiting instead of letting them finish" }),
  deadline: z.iso.datetime({ offset: true }).nullable().default(null)
    .openapi({ description: "When it should be done; nothing is destroyed when it is not" }),
  deadlineSeconds: seconds.nullable().default(null)
    .openapi({ description: "The same, as a time from now" }),
}).refine(({ deadline, deadlineSeconds }) => deadline === null || deadlineSeconds === null, {
  path: ["deadlineSeconds"],
  message: "give deadline or deadlineSeconds, not both",
});

/** Slots; null goes back to the configuration. */
export const capacityBody = z.object({
  note,
  capacity: z.int().min(0).max(MAX_CAPACITY).nullable()
    .openapi({ description: "Slots; null goes back to the configuration" }),
});

/** The label of `vm`; null goes back to the configuration. */
export const labelBody = z.object({
  note,
  label: z.enum(VM_LABELS).nullable()
    .openapi({ description: "null goes back to the configuration" }),
});

/** A release; *forget* must repeat the id. */
export const releaseBody = z.object({
  note,
  tier: z.enum(RELEASE_TIERS),
  confirm: z.string().max(100).default("")
    .openapi({ description: "The assignment's id again: needed for `forget` alone" }),
});

/** A release of an executor without an assignment; *forget* must repeat its name. */
export const strangerBody = z.object({
  note,
  tier: z.enum(STRANGER_TIERS),
  confirm: z.string().max(253).default("")
    .openapi({ description: "The executor's name again: needed for `forget` alone" }),
});

/** What a release would do. */
export const tierQuery = z.object({ tier: z.enum(RELEASE_TIERS) });

const hidden = {
  note: z.string().max(500).default(""),
  key: z.string().regex(/^[\x21-\x7e]{0,255}$/).default(""),
  if_match: z.string().max(300).default(""),
};
const number = z.string().regex(/^[0-9]{0,6}$/, "expected a whole number").default("");

/** Any form. */
export const plainForm = z.object(hidden);

/** `:kind` of a backend's forms. */
export const backendFormParams = z.object({
  name: backendNameSchema,
  kind: z.enum(["cordon", "drain", "resume", "capacity", "label"]),
});

/** Fields of a backend's forms, each used by its own kind only. */
export const backendForm = z.object({
  ...hidden,
  /** Of a drain: a checkbox, and minutes from now. */
  hold: z.enum(["on", "true", "false", ""]).default(""),
  minutes: number,
  /** Empty: back to the configuration. */
  capacity: number,
  label: z.enum([...VM_LABELS, ""]).default(""),
});

/** The same as a form. */
export const strangerForm = z.object({
  ...hidden,
  tier: z.enum(STRANGER_TIERS),
  confirm: z.string().max(253).default(""),
});

/** `:kind` of an assignment's forms. */
export const assignmentFormParams = z.object({
  id: assignmentIdSchema,
  kind: z.enum(["cancel", "retry", "release"]),
});

/** Fields of an assignment's forms. A release without a tier is refused: nothing is preset. */
export const assignmentForm = z.object({
  ...hidden,
  tier: z.enum(RELEASE_TIERS).optional(),
  confirm: z.string().max(100).default(""),
});
