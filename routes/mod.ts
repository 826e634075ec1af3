import type { ProbeRoute, Route } from "../web/define.ts";
import assignments from "./api/v1/assignments.ts";
import assignmentById from "./api/v1/assignments/[id].ts";
import retryAssignment from "./api/v1/assignments/[id]/retry.ts";
import audit from "./api/v1/audit.ts";
import backends from "./api/v1/backends.ts";
import backendByName from "./api/v1/backends/[name].ts";
import config from "./api/v1/config.ts";
import events from "./api/v1/events.ts";
import executors from "./api/v1/executors.ts";
import history from "./api/v1/history.ts";
import leader from "./api/v1/leader.ts";
import openapi from "./api/v1/openapi.ts";
import operationById from "./api/v1/operations/[id].ts";
import status from "./api/v1/status.ts";
import assignmentPage from "./assignments/[id].tsx";
import retryForm from "./assignments/[id]/retry.ts";
import auditPage from "./audit.tsx";
import auditCsv from "./audit/csv.ts";
import auditJson from "./audit/json.ts";
import backendPage from "./backends/[name].tsx";
import canaryPage from "./canary.tsx";
import executorsPage from "./executors.tsx";
import healthPage from "./health.tsx";
import healthBundle from "./health/bundle.ts";
import healthz from "./healthz.ts";
import historyPage from "./history.tsx";
import historyCsv from "./history/csv.ts";
import historyJson from "./history/json.ts";
import now from "./index.tsx";
import leaderPage from "./leader.tsx";
import metrics from "./metrics.ts";
import operationPage from "./operations/[id].tsx";
import readyz from "./readyz.ts";

/** Probes and metrics: all that `HEALTH_LISTEN` answers. */
export const HEALTH_ROUTES: readonly ProbeRoute[] = [healthz, readyz, metrics];

/** Every route by its file; a test holds the table and the folder equal. */
export const ROUTES: Readonly<Record<string, Route>> = {
  "api/v1/assignments.ts": assignments,
  "api/v1/assignments/[id].ts": assignmentById,
  "api/v1/assignments/[id]/retry.ts": retryAssignment,
  "api/v1/audit.ts": audit,
  "api/v1/backends.ts": backends,
  "api/v1/backends/[name].ts": backendByName,
  "api/v1/config.ts": config,
  "api/v1/events.ts": events,
  "api/v1/executors.ts": executors,
  "api/v1/history.ts": history,
  "api/v1/leader.ts": leader,
  "api/v1/openapi.ts": openapi,
  "api/v1/operations/[id].ts": operationById,
  "api/v1/status.ts": status,
  "assignments/[id].tsx": assignmentPage,
  "assignments/[id]/retry.ts": retryForm,
  "audit.tsx": auditPage,
  "audit/csv.ts": auditCsv,
  "audit/json.ts": auditJson,
  "backends/[name].tsx": backendPage,
  "canary.tsx": canaryPage,
  "executors.tsx": executorsPage,
  "health.tsx": healthPage,
  "health/bundle.ts": healthBundle,
  "healthz.ts": healthz,
  "history.tsx": historyPage,
  "history/csv.ts": historyCsv,
  "history/json.ts": historyJson,
  "index.tsx": now,
  "leader.tsx": leaderPage,
  "metrics.ts": metrics,
  "operations/[id].tsx": operationPage,
  "readyz.ts": readyz,
};
