import { createHmac } from "node:crypto";
import type { StepSnapshot } from "../../controller/model/record.ts";
import { fromWireResult } from "../../controller/settle.ts";
import {
  type LogRow,
  type StepState,
  type Task,
  TaskSchema,
} from "../../proto/gen/runner/v1/messages_pb.ts";
import { create, type JsonObject, timestampMs } from "../../proto/runtime.ts";
import type { StoredJob, StoredRow } from "./store.ts";

/** A step as stored. */
export function stepFromWire(step: StepState): StepSnapshot {
  return {
    id: Number(step.id),
    result: fromWireResult(step.result),
    startedAt: step.startedAt === undefined ? 0 : timestampMs(step.startedAt),
    stoppedAt: step.stoppedAt === undefined ? 0 : timestampMs(step.stoppedAt),
    logIndex: Number(step.logIndex),
    logLength: Number(step.logLength),
  };
}

/** Gitea cuts a line here. */
const MAX_LINE = 64 * 1024;

/** A row as stored: a newline becomes `\n` in two characters, a long line is cut, as at Gitea. */
export function rowFromWire(row: LogRow): StoredRow {
  return {
    time: row.time === undefined ? 0 : timestampMs(row.time),
    content: row.content.replaceAll("\n", "\\n").slice(0, MAX_LINE),
  };
}

/** A task as Gitea sends it: workflow of one job, the trusted context, secrets, vars. */
export function taskMessage(
  job: StoredJob,
  server: { readonly serverUrl: string; readonly signingKey: string; readonly now: number },
): Task {
  const context = contextOf(job, server);
  return create(TaskSchema, {
    id: BigInt(job.taskId),
    workflowPayload: new TextEncoder().encode(job.payload),
    context,
    secrets: { GITHUB_TOKEN: job.token, GITEA_TOKEN: job.token },
    vars: {},
    needs: {},
  });
}

function contextOf(
  job: StoredJob,
  server: { readonly serverUrl: string; readonly signingKey: string; readonly now: number },
): JsonObject {
  const base = server.serverUrl.replace(/\/+$/, "");
  const owner = job.repository.split("/", 1)[0] ?? "";
  const repositoryUrl = `${base}/${job.repository}`;
  const runtimeToken = jwt({
    TaskID: job.taskId,
    RunID: job.runId,
    JobID: job.jobId,
    scp: `Actions.Results:${job.runId}:${job.jobId}`,
    exp: Math.floor(server.now / 1000) + 4 * 3600,
  }, server.signingKey);
  return {
    actor: owner,
    api_url: `${base}/api/v1`,
    base_ref: "",
    event: {
      ref: "refs/heads/main",
      repository: { full_name: job.repository, html_url: repositoryUrl, fork: false },
      sender: { login: owner },
    },
    event_name: job.eventName,
    gitea_default_actions_url: "https://github.com",
    gitea_runtime_token: runtimeToken,
    head_ref: "",
    job: job.job,
    ref: "refs/heads/main",
    ref_name: "main",
    ref_protected: false,
    ref_type: "branch",
    repository: job.repository,
    repositoryUrl,
    repository_owner: owner,
    run_attempt: "1",
    run_id: String(job.runId),
    run_number: String(job.runId),
    secret_source: "Actions",
    server_url: `${base}/`,
    sha: "0000000000000000000000000000000000000001",
    token: job.token,
    triggering_actor: owner,
    workflow: job.workflow,
    workspace: "",
  };
}

function jwt(payload: Readonly<Record<string, unknown>>, key: string): string {
  const encode = (value: unknown) => base64Url(JSON.stringify(value));
  const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(payload)}`;
  return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
}

function base64Url(text: string): string {
  return new TextEncoder().encode(text).toBase64({ alphabet: "base64url", omitPadding: true });
}
