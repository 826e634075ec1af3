import { create, type JsonObject } from "../../proto/runtime.ts";
import { type Task, TaskSchema } from "../../proto/gen/runner/v1/messages_pb.ts";

/** A task as Gitea hands it out; what is given replaces the sample's fields. */
export function sampleTask(
  over: {
    readonly id?: bigint;
    readonly context?: JsonObject;
    readonly workflow?: string;
    readonly secrets?: Record<string, string>;
  } = {},
): Task {
  const context: JsonObject = { ...sampleContext, ...over.context };
  const workflow = over.workflow ??
    `name: two\njobs:\n  ${context.job}:\n    runs-on:\n      - self-hosted\n      - pod\n`;
  return create(TaskSchema, {
    id: over.id ?? 11n,
    workflowPayload: new TextEncoder().encode(workflow),
    context,
    secrets: over.secrets ?? { GITEA_TOKEN: "sample-token" },
    needs: {},
    vars: { DEMO_VAR: "var-value" },
  });
}

/** The context of a task that a push to a branch started. */
export const sampleContext: JsonObject = {
  actor: "peeradmin",
  event: { ref: "refs/heads/main", repository: { id: 1, full_name: "peeradmin/demo" } },
  event_name: "push",
  gitea_runtime_token: runtimeToken({ TaskID: 11, RunID: 5, JobID: 9 }),
  job: "second",
  ref: "refs/heads/main",
  repository: "peeradmin/demo",
  repository_owner: "peeradmin",
  run_id: "5",
  run_number: "5",
  server_url: "http://gitea.example.org/",
  token: "sample-token",
  workflow: "two.yaml",
};

/** An unsigned JWT with these claims. */
export function runtimeToken(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: unknown) =>
    new TextEncoder().encode(JSON.stringify(value)).toBase64({
      alphabet: "base64url",
      omitPadding: true,
    });
  return `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}.c2lnbmF0dXJl`;
}
