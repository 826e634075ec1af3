import { z } from "@hono/zod-openapi";
import { AUDIT_RESULTS } from "../controller/actions/action_kinds.ts";
import { type AssignmentId, BACKENDS, parseAssignmentId } from "../controller/model/ids.ts";
import { REASONS } from "../controller/model/reason.ts";
import type {
  AssignmentDetailView,
  AssignmentView,
  AuditView,
  BackendView,
  EventView,
  ExecutorView,
  HistoryEntryView,
  LeaderView,
  OperationView,
  PhaseView,
  SourceView,
  StatusView,
} from "../controller/views/views.ts";
import { schemaOf } from "./schema_of.ts";

// The shapes of controller/views/views.ts as schemas: the compiler holds both equal (schema_of.ts).

const time = z.string().openapi({ format: "date-time", example: "2027-01-15T08:00:00.000Z" });
const count = z.int().min(0);
const ms = z.number().min(0);

/** An assignment id. */
export const assignmentIdSchema = z.custom<AssignmentId>(
  (value) => typeof value === "string" && parseAssignmentId(value) !== undefined,
  "expected gitea-task-<task id>",
).openapi({ type: "string", pattern: "^gitea-task-[1-9][0-9]{0,18}$", example: "gitea-task-812" });

/** `pod` or `vm`. */
export const backendNameSchema = z.enum(BACKENDS);
/** Names of the states of controller/model/state.ts. */
export const stateNameSchema = z.enum([
  "stored",
  "admitted",
  "starting",
  "ready",
  "claimed",
  "running",
  "terminal",
  "cleaned",
  "parked",
  "invalid",
]);
const reasonSchema = z.enum(REASONS);
const resultSchema = z.enum(["success", "failure", "cancelled", "skipped"]);

/** A server that the controller needs: is it there, since when, how old the last news of it is. */
const sourceSchema = schemaOf<SourceView>()(
  z.object({
    state: z.enum(["up", "down", "degraded", "unused", "unknown"]),
    since: time.nullable(),
    ageMs: ms.nullable(),
    lastError: z.string().nullable(),
  }).openapi("Source"),
);

/** Who leads, and the replicas beside it. */
export const leaderSchema = schemaOf<LeaderView>()(
  z.object({
    mode: z.enum(["kubernetes", "none"]),
    holder: z.string().nullable(),
    self: z.string(),
    leading: z.boolean(),
    epoch: count.nullable(),
    transitions: count.nullable(),
    acquiredAt: time.nullable(),
    renewedAt: time.nullable(),
    leaseSeconds: z.number().nullable(),
    replicas: z.array(z.object({
      name: z.string(),
      ready: z.boolean().nullable(),
      leading: z.boolean(),
      seenAt: time.nullable(),
    })).readonly(),
  }).openapi("Leader"),
);

const note = { by: z.string(), at: time, note: z.string() };

/** One backend: its slots and what waits for them. */
export const backendSchema = schemaOf<BackendView>()(
  z.object({
    name: backendNameSchema,
    label: z.string(),
    capacity: count,
    used: count,
    free: count,
    waiting: count,
    running: count,
    parked: count,
    unknown: count,
    numPending: count.nullable(),
    numAckPending: count.nullable(),
    cordoned: z.object(note).nullable(),
    drain: z.object({ ...note, deadline: time.nullable(), remaining: count, hold: z.boolean() })
      .nullable(),
    overrides: z.object({
      capacity: z.object({ ...note, value: count, replaced: count }).nullable(),
      label: z.object({ ...note, value: z.string(), replaced: z.string() }).nullable(),
    }),
    startMs: z.object({ p50: ms.nullable(), p95: ms.nullable() }),
    failures: z.partialRecord(reasonSchema, count),
    slots: z.array(z.object({
      assignmentId: assignmentIdSchema,
      executor: z.string().nullable(),
      state: stateNameSchema,
      since: time,
    })).readonly(),
  }).openapi("Backend"),
);

const assignmentShape = z.object({
  id: assignmentIdSchema,
  taskId: z.string(),
  backend: backendNameSchema,
  state: stateNameSchema,
  reason: z.object({ code: reasonSchema, detail: z.string(), since: time }).nullable(),
  result: resultSchema.nullable(),
  repository: z.string(),
  owner: z.string(),
  job: z.string(),
  ref: z.string().nullable(),
  runId: z.string().nullable(),
  giteaUrl: z.string().nullable(),
  spiffeId: z.string(),
  fork: z.boolean(),
  position: z.int().min(1).nullable(),
  streamSequence: count.nullable(),
  deliveries: count.nullable(),
  nextTryAt: time.nullable(),
  failures: count,
  executor: z.string().nullable(),
  createdAt: time,
  updatedAt: time,
  epoch: count.nullable(),
});

/** One job as it stands now. */
export const assignmentSchema = schemaOf<AssignmentView>()(assignmentShape.openapi("Assignment"));

const eventShape = z.object({
  seq: count.nullable(),
  at: time,
  event: z.string(),
  component: z.string(),
  retryDelayMs: ms,
  durationMs: ms.nullable(),
  executor: z.string().nullable(),
  phase: z.string().nullable(),
  detail: z.string().nullable(),
});

const eventSchema = schemaOf<EventView>()(eventShape.openapi("Event"));

const phaseSchema = schemaOf<PhaseView>()(
  z.object({
    name: z.string(),
    startedAt: time,
    durationMs: ms.nullable(),
    p50Ms: ms.nullable(),
    p95Ms: ms.nullable(),
  }).openapi("Phase"),
);

/** One job with its history, its phases and the last lines of its log. */
export const assignmentDetailSchema = schemaOf<AssignmentDetailView>()(
  assignmentShape.extend({
    events: z.array(eventSchema).readonly(),
    phases: z.array(phaseSchema).readonly(),
    lastLines: z.array(z.string()).readonly(),
    traceId: z.string().nullable(),
  }).openapi("AssignmentDetail"),
);

/** One executor, whether a job of ours is in it or not. */
export const executorSchema = schemaOf<ExecutorView>()(
  z.object({
    name: z.string(),
    uid: z.string().nullable(),
    backend: backendNameSchema,
    assignmentId: z.string().nullable(),
    phase: z.string(),
    node: z.string().nullable(),
    createdAt: time.nullable(),
    heartbeatAt: time.nullable(),
    claimed: z.boolean(),
    terminal: z.boolean(),
    ownership: z.enum(["ours", "unknown", "foreign"]),
    why: z.string().nullable(),
    recovered: z.object({ at: time, proof: z.enum(["record", "heartbeat", "signature"]) })
      .nullable(),
  }).openapi("Executor"),
);

/** One event of any job. */
export const historySchema = schemaOf<HistoryEntryView>()(
  eventShape.extend({
    assignmentId: z.string(),
    backend: backendNameSchema,
  }).openapi("HistoryEntry"),
);

/** One operator action, done or refused. */
export const auditSchema = schemaOf<AuditView>()(
  z.object({
    id: z.string(),
    at: time,
    actor: z.string(),
    role: z.string(),
    action: z.string(),
    target: z.string(),
    before: z.unknown(),
    after: z.unknown(),
    note: z.string(),
    requestId: z.string(),
    result: z.enum(AUDIT_RESULTS),
    error: z.string().nullable(),
  }).openapi("AuditEntry"),
);

/** One long operator action and how far it is. */
export const operationSchema = schemaOf<OperationView>()(
  z.object({
    id: z.string(),
    action: z.string(),
    target: z.string(),
    state: z.enum(["running", "done", "failed", "undone"]),
    progress: z.object({ done: count, total: count }),
    startedAt: time,
    endedAt: time.nullable(),
    by: z.string(),
    note: z.string(),
    before: z.unknown(),
    after: z.unknown(),
    error: z.string().nullable(),
  }).openapi("Operation"),
);

/** Everything at a glance. */
export const statusSchema = schemaOf<StatusView>()(
  z.object({
    version: z.string(),
    nextFetchAt: time.nullable().exactOptional(),
    profile: z.enum(["embedded", "production"]),
    leader: leaderSchema,
    sources: z.record(
      z.enum(["gitea", "nats", "kubernetes", "spire", "opensandbox"]),
      sourceSchema,
    ),
    backends: z.array(backendSchema).readonly(),
    ready: z.boolean(),
    eventsAt: time.nullable().exactOptional(),
  }).openapi("Status"),
);

/** The configuration: variable to value. */
export const configSchema = z.record(z.string(), z.string().nullable());

/** An error as `application/problem+json` (RFC 9457), with the id that the log names too. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  requestId: z.string(),
}).openapi("Problem");
