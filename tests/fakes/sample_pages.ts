import type { BackendName } from "../../controller/model/ids.ts";
import type { CanaryView, HealthView, HourView } from "../../controller/views/operating_views.ts";
import type { AuditView, ExecutorView, OperationView } from "../../controller/views/views.ts";
import { HOSTILE } from "./sample_jobs.ts";

const iso = (now: number, secondsAgo: number) => new Date(now - secondsAgo * 1000).toISOString();

/** An hour with a burst in it; nothing is known of its first minutes. */
export function hourOf(name: BackendName, now: number): HourView {
  const first = Math.floor(now / 60_000) * 60_000 - 59 * 60_000;
  const minutes = Array.from({ length: 60 }, (_, i) => {
    const at = new Date(first + i * 60_000).toISOString();
    if (i < 8) {
      return { at, waiting: null, started: null, startMs: null, ended: null, failed: null };
    }
    const burst = Math.max(0, 12 - Math.abs(i - 37)) * (name === "pod" ? 2 : 1);
    const started = i % 3 === 0 ? 0 : Math.min(5, 1 + burst);
    return {
      at,
      waiting: burst,
      started,
      startMs: started === 0 ? null : 1_300 + burst * 420 + (i * 37) % 600,
      ended: started,
      failed: i % 17 === 0 ? 1 : 0,
    };
  });
  return { name, since: new Date(first + 8 * 60_000).toISOString(), minutes };
}

/** The canary label is declared, and does a little worse than production did. */
export function canaryOf(now: number): CanaryView {
  return {
    enabled: true,
    declared: "vm-dev",
    declaredSince: iso(now, 5_398),
    configured: "vm",
    override: {
      value: "vm-dev",
      replaced: "vm",
      by: "mira",
      at: iso(now, 5_400),
      note: "kata 3.21 on two nodes",
    },
    since: iso(now, 90_000),
    labels: [
      {
        label: "vm",
        declared: false,
        waiting: 0,
        running: 1,
        ended: 412,
        success: 391,
        failure: 14,
        cancelled: 7,
        startMs: { p50: 8_900, p95: 15_200 },
        lastFailures: [{
          id: "gitea-task-702",
          repository: "acme/billing",
          job: "integration",
          at: iso(now, 9_300),
          code: null,
          detail: null,
        }],
      },
      {
        label: "vm-dev",
        declared: true,
        waiting: 2,
        running: 1,
        ended: 23,
        success: 19,
        failure: 3,
        cancelled: 1,
        startMs: { p50: 9_400, p95: 31_800 },
        lastFailures: [{
          id: "gitea-task-799",
          repository: "acme/web",
          job: "e2e",
          at: iso(now, 300),
          code: "executor_lost",
          detail: "the executor ended without a result: exit code 137, OOMKilled",
        }, {
          id: "gitea-task-781",
          repository: HOSTILE.rtl,
          job: HOSTILE.html,
          at: iso(now, 1_300),
          code: "claim_timeout",
          detail: HOSTILE.ansi,
        }],
      },
    ],
    unlabelled: 3,
  };
}

/** Executors that no job of the sample has: recovered, unknown, another instance's. */
export function strangersOf(now: number): readonly ExecutorView[] {
  const common = {
    uid: "0e9d4c1f-77a5-4f0e-9a44-5c7f2b8a9d10",
    assignmentId: null,
    heartbeatAt: null,
    claimed: false,
    terminal: false,
    recovered: null,
  };
  return [
    {
      ...common,
      name: "ci-3fa9c1d27b-771",
      backend: "vm",
      phase: "Running",
      node: "kata-2",
      createdAt: iso(now, 4_100),
      ownership: "unknown",
      why: `there is no record of it, so nobody can tell whether it is ours ${HOSTILE.html}`,
    },
    {
      ...common,
      name: "ci-99aa00bb11-12",
      uid: "4b5e1a90-1111-4c3e-8888-9d10aa77c0de",
      backend: "pod",
      phase: "Pending",
      node: null,
      createdAt: iso(now, 640),
      ownership: "foreign",
      why: "made by instance 99aa00bb11",
    },
  ];
}

/** Operations of every state. */
export function operationsOf(now: number): readonly OperationView[] {
  return [
    {
      id: "op-1",
      action: "drain",
      target: "vm",
      state: "running",
      progress: { done: 3, total: 5 },
      startedAt: iso(now, 60),
      endedAt: null,
      by: "ops",
      note: "kernel update",
      before: { drain: null },
      after: { drain: { deadline: null, hold: false } },
      error: null,
    },
    {
      id: "op-2",
      action: "release",
      target: "gitea-task-790",
      state: "failed",
      progress: { done: 1, total: 3 },
      startedAt: iso(now, 900),
      endedAt: iso(now, 880),
      by: "mira",
      note: HOSTILE.html,
      before: { state: "running" },
      after: null,
      error: "delete Pod: 403 forbidden",
    },
    {
      id: "op-3",
      action: "capacity",
      target: "vm",
      state: "done",
      progress: { done: 1, total: 1 },
      startedAt: iso(now, 4_000),
      endedAt: iso(now, 4_000),
      by: "mira",
      note: "one node less",
      before: { capacity: 4 },
      after: { capacity: 3 },
      error: null,
    },
  ];
}

/** What operators did, and were refused. */
export function auditOf(now: number): readonly AuditView[] {
  return [
    {
      id: "a-4",
      at: iso(now, 60),
      actor: HOSTILE.html,
      role: "operator",
      action: "cordon",
      target: "vm",
      before: null,
      after: { cordoned: true },
      note: "kernel update",
      requestId: "0f6f9ad2-3c1b-4b52-9d55-0d5b4e1f9a01",
      result: "done",
      error: null,
    },
    {
      id: "a-3",
      at: iso(now, 880),
      actor: "mira",
      role: "admin",
      action: "release",
      target: "gitea-task-790",
      before: { state: "running", executor: "ci-3fa9c1d27b-790" },
      after: null,
      note: "node is gone",
      requestId: "0f6f9ad2-3c1b-4b52-9d55-0d5b4e1f9a02",
      result: "failed",
      error: "delete Pod: 403 forbidden",
    },
    {
      id: "a-2",
      at: iso(now, 3_000),
      actor: "tom",
      role: "viewer",
      action: "capacity",
      target: "pod",
      before: { capacity: 8 },
      after: null,
      note: '=HYPERLINK("http://x")',
      requestId: "0f6f9ad2-3c1b-4b52-9d55-0d5b4e1f9a03",
      result: "refused",
      error: "the role viewer may only look",
    },
    {
      id: "a-1",
      at: iso(now, 4_000),
      actor: "mira",
      role: "operator",
      action: "capacity",
      target: "vm",
      before: { capacity: 4 },
      after: { capacity: 3 },
      note: "one node less",
      requestId: "0f6f9ad2-3c1b-4b52-9d55-0d5b4e1f9a04",
      result: "done",
      error: null,
    },
  ];
}

/** Tests of every outcome, and a version that is known to be bad. */
export function healthOf(now: number): HealthView {
  const at = iso(now, 42);
  return {
    selfTests: [
      { name: "gitea", state: "ok", detail: "Ping answered", at, tookMs: 12 },
      { name: "nats", state: "ok", detail: "write, read and delete went through", at, tookMs: 4 },
      { name: "events", state: "failed", detail: HOSTILE.html, at, tookMs: 10_000 },
      { name: "identity", state: "running", detail: null, at, tookMs: null },
      { name: "pod", state: "unknown", detail: null, at: null, tookMs: null },
    ],
    versions: [
      { name: "gitea-dynamic-runner", version: "0.1.0", verdict: "good", detail: null },
      {
        name: "deno",
        version: "2.7.9",
        verdict: "bad",
        detail: "its HTTP/2 server with certificates is broken: use 2.9.6",
      },
      { name: "nats-server", version: "2.15.2", verdict: "good", detail: null },
      { name: "gitea", version: null, verdict: "unknown", detail: null },
    ],
  };
}
