import type { ProbeRoute, Route } from "../web/define.ts";
import assignmentForm from "./actions/assignments/[id]/[kind].ts";
import backendForm from "./actions/backends/[name]/[kind].ts";
import executorForm from "./actions/executors/[name]/release.ts";
import stepDownForm from "./actions/leader/step_down.ts";
import undoForm from "./actions/operations/[id]/undo.ts";
import assignments from "./api/v1/assignments.ts";
import assignmentById from "./api/v1/assignments/[id].ts";
import cancelAssignment from "./api/v1/assignments/[id]/cancel.ts";
import previewAssignment from "./api/v1/assignments/[id]/preview.ts";
import releaseAssignment from "./api/v1/assignments/[id]/release.ts";
import retryAssignment from "./api/v1/assignments/[id]/retry.ts";
import audit from "./api/v1/audit.ts";
import backends from "./api/v1/backends.ts";
import backendByName from "./api/v1/backends/[name].ts";
import setCapacity from "./api/v1/backends/[name]/capacity.ts";
import cordonBackend from "./api/v1/backends/[name]/cordon.ts";
import drainBackend from "./api/v1/backends/[name]/drain.ts";
import setLabel from "./api/v1/backends/[name]/label.ts";
import resumeBackend from "./api/v1/backends/[name]/resume.ts";
import config from "./api/v1/config.ts";
import docs from "./api/v1/docs.tsx";
import events from "./api/v1/events.ts";
import executors from "./api/v1/executors.ts";
import releaseExecutor from "./api/v1/executors/[name]/release.ts";
import history from "./api/v1/history.ts";
import leader from "./api/v1/leader.ts";
import stepDown from "./api/v1/leader/step_down.ts";
import openapi from "./api/v1/openapi.ts";
import operations from "./api/v1/operations.ts";
import operationById from "./api/v1/operations/[id].ts";
import undoOperation from "./api/v1/operations/[id]/undo.ts";
import status from "./api/v1/status.ts";
import assignmentPage from "./assignments/[id].tsx";
import cancelPage from "./assignments/[id]/cancel.ts";
import releasePage from "./assignments/[id]/release.ts";
import retryForm from "./assignments/[id]/retry.ts";
import auditPage from "./audit.tsx";
import auditCsv from "./audit/csv.ts";
import auditJson from "./audit/json.ts";
import backendPage from "./backends/[name].tsx";
import canaryPage from "./canary.tsx";
import executorsPage from "./executors.tsx";
import strangerPage from "./executors/[name]/release.tsx";
import healthPage from "./health.tsx";
import healthBundle from "./health/bundle.ts";
import healthRun from "./health/run.ts";
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
  "actions/assignments/[id]/[kind].ts": assignmentForm,
  "actions/backends/[name]/[kind].ts": backendForm,
  "actions/executors/[name]/release.ts": executorForm,
  "actions/leader/step_down.ts": stepDownForm,
  "actions/operations/[id]/undo.ts": undoForm,
  "api/v1/assignments.ts": assignments,
  "api/v1/assignments/[id].ts": assignmentById,
  "api/v1/assignments/[id]/cancel.ts": cancelAssignment,
  "api/v1/assignments/[id]/preview.ts": previewAssignment,
  "api/v1/assignments/[id]/release.ts": releaseAssignment,
  "api/v1/assignments/[id]/retry.ts": retryAssignment,
  "api/v1/audit.ts": audit,
  "api/v1/backends.ts": backends,
  "api/v1/backends/[name].ts": backendByName,
  "api/v1/backends/[name]/capacity.ts": setCapacity,
  "api/v1/backends/[name]/cordon.ts": cordonBackend,
  "api/v1/backends/[name]/drain.ts": drainBackend,
  "api/v1/backends/[name]/label.ts": setLabel,
  "api/v1/backends/[name]/resume.ts": resumeBackend,
  "api/v1/config.ts": config,
  "api/v1/docs.tsx": docs,
  "api/v1/events.ts": events,
  "api/v1/executors.ts": executors,
  "api/v1/executors/[name]/release.ts": releaseExecutor,
  "api/v1/history.ts": history,
  "api/v1/leader.ts": leader,
  "api/v1/leader/step_down.ts": stepDown,
  "api/v1/openapi.ts": openapi,
  "api/v1/operations.ts": operations,
  "api/v1/operations/[id].ts": operationById,
  "api/v1/operations/[id]/undo.ts": undoOperation,
  "api/v1/status.ts": status,
  "assignments/[id].tsx": assignmentPage,
  "assignments/[id]/cancel.ts": cancelPage,
  "assignments/[id]/release.ts": releasePage,
  "assignments/[id]/retry.ts": retryForm,
  "audit.tsx": auditPage,
  "audit/csv.ts": auditCsv,
  "audit/json.ts": auditJson,
  "backends/[name].tsx": backendPage,
  "canary.tsx": canaryPage,
  "executors.tsx": executorsPage,
  "executors/[name]/release.tsx": strangerPage,
  "health.tsx": healthPage,
  "health/bundle.ts": healthBundle,
  "health/run.ts": healthRun,
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
