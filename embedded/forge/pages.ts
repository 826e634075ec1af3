import type { Forge } from "./forge.ts";
import type { StoredJob } from "./store.ts";

/** What `GET /api/forge/tasks` says of one job; `taskId` is null while it waits. */
export interface ForgeTaskView {
  readonly jobId: number;
  readonly taskId: string | null;
  readonly runId: string;
  readonly repository: string;
  readonly job: string;
  readonly title: string;
  readonly runsOn: readonly string[];
  readonly state: "waiting" | "running" | "cancelling" | "done";
  readonly result: string | null;
  readonly rows: number;
  readonly sealed: boolean;
  readonly steps: readonly { readonly id: number; readonly result: string | null }[];
  readonly outputs: Readonly<Record<string, string>>;
  readonly url: string;
}

/** What the forge calls itself where Gitea tells its version. */
export const FORGE_VERSION = "sample-forge";

/**
 * Read-only pages: the list at `/`, a job at Gitea's path for it (`?format=json` for machines), and
 * `/api/forge/tasks`. Everything of a workflow or log is escaped; no script runs.
 */
export function forgePages(forge: Forge): (request: Request) => Response {
  return (request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return new Response("Only GET\n", { status: 405 });
    }
    if (pathname === "/") return page("Sample forge", listOf(forge));
    if (pathname === "/api/healthz") return Response.json({ status: "pass" });
    if (pathname === "/api/v1/version") return Response.json({ version: FORGE_VERSION });
    if (pathname === "/api/forge/tasks") {
      return Response.json(forge.jobs().map((job) => viewOf(forge, job)));
    }
    const match = /^\/([\w.-]+\/[\w.-]+)\/actions\/runs\/(\d+)(?:\/jobs\/(\d+))?$/.exec(pathname);
    const job = forge.jobs().find((job) =>
      job.repository === match?.[1] && String(job.runId) === match[2] &&
      (match[3] === undefined || String(job.jobId) === match[3])
    );
    if (job === undefined) return new Response("Not found\n", { status: 404 });
    if (searchParams.get("format") === "json") {
      return Response.json({
        ...viewOf(forge, job),
        log: forge.rows(job.jobId).map((row) => row.content),
      });
    }
    return page(`${job.title} · ${job.repository}`, jobOf(forge, job));
  };
}

function stateOf(job: StoredJob): ForgeTaskView["state"] {
  if (job.result !== null) return "done";
  if (job.cancelling) return "cancelling";
  return job.taskId === 0 ? "waiting" : "running";
}

function viewOf(forge: Forge, job: StoredJob): ForgeTaskView {
  return {
    jobId: job.jobId,
    taskId: job.taskId === 0 ? null : String(job.taskId),
    runId: String(job.runId),
    repository: job.repository,
    job: job.job,
    title: job.title,
    runsOn: job.runsOn,
    state: stateOf(job),
    result: job.result,
    rows: forge.rows(job.jobId).length,
    sealed: job.sealed,
    steps: job.steps.map(({ id, result }) => ({ id, result })),
    outputs: job.outputs,
    url: pathOf(job),
  };
}

function pathOf(job: StoredJob): string {
  return `/${job.repository}/actions/runs/${job.runId}/jobs/${job.jobId}`;
}

function listOf(forge: Forge): string {
  const rows = [...forge.jobs()].reverse().map((job) =>
    `<tr><td><a href="${escape(pathOf(job))}">${escape(job.title)}</a></td><td>${
      escape(job.repository)
    }</td><td>${escape(job.runsOn.join(", "))}</td><td>${
      escape(job.result ?? stateOf(job))
    }</td></tr>`
  );
  return `<h1>Sample forge</h1><table><thead><tr><th>Job</th><th>Repository</th><th>Runs on</th><th>State</th></tr></thead><tbody>${
    rows.join("")
  }</tbody></table>`;
}

function jobOf(forge: Forge, job: StoredJob): string {
  const log = forge.rows(job.jobId).map((row) => escape(row.content)).join("\n");
  const steps = job.steps.map((step) => `<li>${escape(step.result ?? "running")}</li>`).join("");
  return `<p><a href="/">All jobs</a></p><h1>${escape(job.title)}</h1><p>${
    escape(job.repository)
  }, run ${job.runId}, ${escape(job.workflow)}: <strong>${
    escape(job.result ?? stateOf(job))
  }</strong></p><ol>${steps}</ol><pre>${log}</pre>`;
}

function page(title: string, body: string): Response {
  const style = "body{font:16px system-ui;margin:2rem;color-scheme:light dark}" +
    "td,th{padding:.2rem 1rem .2rem 0;text-align:left}pre{white-space:pre-wrap}";
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${
    escape(title)
  }</title><style>${style}</style><body>${body}</body></html>`;
  return new Response(html, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    },
  });
}

function escape(text: string): string {
  return text.replace(
    /[&<>"']/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c] ?? c,
  );
}
