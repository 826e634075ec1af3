import {
  type AssignmentId,
  assignmentIdOf,
  type BackendName,
  parseTaskId,
} from "../../controller/model/ids.ts";
import type { ReasonCode, Result } from "../../controller/model/reason.ts";
import type { StateName } from "../../controller/model/state.ts";
import type { AssignmentView, EventView, PhaseView } from "../../controller/views/views.ts";

/** Strings that an attacker may choose, each in the place where it would hurt. */
export const HOSTILE = {
  html: `<img src=x onerror="document.title='owned'">`,
  script: `</script><script>document.title='owned'</script>`,
  link: "javascript:document.title='owned'",
  rtl: "acme/\u202Egnp.exe",
  ansi: "\u001b[31mred\u001b[0m\u0000\u0007\r\nfake: line",
} as const;

/** A short way to write a job down; the rest has plain defaults. Times are seconds before `now`. */
export interface JobSketch {
  readonly task: number;
  readonly state: StateName;
  readonly repository?: string;
  readonly job?: string;
  readonly ref?: string | null;
  readonly backend?: BackendName;
  readonly age: number;
  readonly inState?: number;
  readonly reason?: readonly [ReasonCode, string];
  readonly result?: Result;
  readonly position?: number;
  readonly deliveries?: number;
  readonly failures?: number;
  readonly nextTryIn?: number;
  readonly fork?: boolean;
  readonly giteaUrl?: string | null;
  readonly spiffeId?: string;
}

/** The id of task `n`. */
export function idOf(n: number): AssignmentId {
  const task = parseTaskId(String(n));
  if (task === undefined) throw new RangeError(`Give a task id: ${n}`);
  return assignmentIdOf(task);
}

/** The job of a sketch as the port shows it. */
export function jobOf(sketch: JobSketch, now: number): AssignmentView {
  const { task, state, backend = "pod", repository = "acme/web", job = "build" } = sketch;
  const ago = (s: number) => new Date(now - s * 1000).toISOString();
  const inState = sketch.inState ?? sketch.age;
  const folder = sketch.fork === true ? "ci-fork" : "ci";
  const early = state === "stored" || state === "parked" || state === "invalid";
  return {
    id: idOf(task),
    taskId: String(task),
    backend,
    state,
    reason: sketch.reason === undefined
      ? null
      : { code: sketch.reason[0], detail: sketch.reason[1], since: ago(inState) },
    result: sketch.result ?? null,
    repository,
    owner: repository.split("/")[0] ?? "",
    job,
    ref: sketch.ref === undefined ? "refs/heads/main" : sketch.ref,
    runId: String(task - 500),
    giteaUrl: sketch.giteaUrl === undefined
      ? `https://git.example.org/${repository}/actions/runs/${task - 500}/jobs/0`
      : sketch.giteaUrl,
    spiffeId: sketch.spiffeId ?? `spiffe://ci.example.org/${folder}/${repository}/${job}`,
    fork: sketch.fork ?? false,
    position: sketch.position ?? null,
    streamSequence: task + 4000,
    deliveries: sketch.deliveries ?? 1,
    nextTryAt: sketch.nextTryIn === undefined ? null : ago(-sketch.nextTryIn),
    failures: sketch.failures ?? 0,
    executor: early ? null : `ci-3fa9c1d27b-${task}`,
    createdAt: ago(sketch.age),
    updatedAt: ago(inState),
    epoch: 7,
  };
}

/** Jobs of every kind, hostile ones among them. */
export const SKETCHES: readonly JobSketch[] = [
  {
    task: 796,
    state: "parked",
    job: "integration",
    repository: "acme/billing",
    backend: "vm",
    age: 1930,
    inState: 214,
    failures: 5,
    nextTryIn: 86,
    deliveries: 9,
    reason: [
      "parked",
      "5 executors ended before the claim; last: exit code 137, OOMKilled at 512 MiB",
    ],
  },
  {
    task: 809,
    state: "admitted",
    job: "image",
    repository: "acme/web",
    age: 94,
    inState: 41,
    reason: ["quota", `pods "ci-3fa9c1d27b-809" is forbidden: exceeded quota: ci, used: pods=20`],
  },
  {
    task: 810,
    state: "starting",
    job: "lint",
    repository: "acme/web",
    age: 71,
    inState: 38,
    failures: 1,
    reason: [
      "image_pull",
      `Back-off pulling image "registry.example.org/ci/executor:1.0.8": not found`,
    ],
  },
  {
    task: 811,
    state: "ready",
    job: "test (node 22)",
    repository: "platform/deploy-tools",
    age: 22,
    inState: 3,
    reason: ["awaiting_claim", "identity bound, the gate has not called yet"],
  },
  {
    task: 812,
    state: "stored",
    job: "e2e",
    repository: "acme/web",
    backend: "vm",
    age: 660,
    position: 1,
    deliveries: 42,
    nextTryIn: 2,
    reason: ["backend_cordoned", "cordoned by mira: kernel update"],
  },
  {
    task: 813,
    state: "stored",
    job: "release",
    repository: "acme/firmware",
    backend: "vm",
    age: 420,
    position: 2,
    reason: ["backend_cordoned", "cordoned by mira: kernel update"],
  },
  {
    task: 814,
    state: "stored",
    job: HOSTILE.html,
    repository: HOSTILE.rtl,
    ref: `refs/heads/${HOSTILE.html}`,
    age: 63,
    fork: true,
    position: 1,
    giteaUrl: HOSTILE.link,
    spiffeId: `spiffe://ci.example.org/ci-fork/${HOSTILE.script}`,
    reason: ["awaiting_slot", `8 of 8 pod slots in use ${HOSTILE.script}${HOSTILE.ansi}`],
  },
  {
    task: 815,
    state: "stored",
    job: "test (node 24)",
    repository: "platform/deploy-tools",
    age: 12,
    position: 2,
    reason: ["awaiting_slot", "8 of 8 pod slots in use; 3 of them are starting"],
  },
  { task: 803, state: "running", job: "build", repository: "acme/web", age: 192, inState: 187 },
  { task: 804, state: "running", job: "unit", repository: "acme/billing", age: 150, inState: 140 },
  {
    task: 805,
    state: "running",
    job: "docs",
    repository: "contrib/handbook",
    age: 48,
    inState: 44,
    fork: true,
  },
  {
    task: 801,
    state: "running",
    job: "kernel-tests",
    repository: "acme/firmware",
    backend: "vm",
    age: 702,
    inState: 661,
  },
  { task: 806, state: "claimed", job: "migrate", repository: "acme/billing", age: 9, inState: 1 },
  {
    task: 802,
    state: "terminal",
    job: "publish",
    repository: "platform/charts",
    age: 310,
    inState: 4,
    result: "success",
  },
  {
    task: 800,
    state: "cleaned",
    job: "unit",
    repository: "acme/web",
    age: 540,
    inState: 64,
    result: "success",
  },
  {
    task: 799,
    state: "cleaned",
    job: "integration",
    repository: "acme/billing",
    age: 900,
    inState: 122,
    result: "failure",
    reason: ["executor_lost", "OOMKilled: container executor used 2 GiB of 2 GiB"],
  },
  {
    task: 798,
    state: "cleaned",
    job: "nightly",
    repository: "contrib/handbook",
    backend: "vm",
    age: 2400,
    inState: 300,
    result: "cancelled",
    reason: ["cancelled", "cancelled in Gitea while it ran"],
  },
  {
    task: 797,
    state: "invalid",
    job: "deploy",
    repository: "acme/infra",
    age: 610,
    inState: 605,
    result: "failure",
    reason: [
      "invalid",
      `task runs-on labels must select exactly one of pod or vm: ["self-hosted","pod","vm"]`,
    ],
  },
  {
    task: 795,
    state: "cleaned",
    job: "lint",
    repository: "acme/web",
    age: 1300,
    inState: 1270,
    result: "success",
  },
];

const STEPS: readonly (readonly [string, string, number, string | null])[] = [
  ["received", "scheduler", 12, null],
  ["capacity_acquired", "scheduler", 3, null],
  ["executor_absent", "worker", 9, null],
  ["executor_created", "worker", 640, "Pending"],
  ["identity_target_pending", "worker", 2000, "Pending"],
  ["identity_bound", "worker", 55, "Running"],
  ["backend_ready", "scheduler", 1450, null],
  ["runner_claimed", "scheduler", 210, "Running"],
  ["acked", "scheduler", 18, null],
  ["running", "scheduler", 181_000, "Running"],
  ["terminal", "scheduler", 140, "Succeeded"],
  ["marked", "worker", 2300, "Succeeded"],
  ["cleaned", "lifecycle", 0, null],
];

const UNTIL: Readonly<Record<StateName, number>> = {
  stored: 1,
  parked: 1,
  invalid: 1,
  admitted: 3,
  starting: 5,
  ready: 7,
  claimed: 9,
  running: 10,
  terminal: 11,
  cleaned: 13,
};

/** The events of a job up to its state. */
export function eventsOf(job: AssignmentView): EventView[] {
  let at = Date.parse(job.createdAt);
  const count = UNTIL[job.state];
  return STEPS.slice(0, count).map(([event, component, ms, phase], index): EventView => {
    const started = at;
    at += ms;
    return {
      seq: 90_000 + Number(job.taskId) * 20 + index,
      at: new Date(started).toISOString(),
      event,
      component,
      retryDelayMs: event === "identity_target_pending" ? 2000 : 0,
      durationMs: index === count - 1 ? null : ms,
      executor: component === "worker" && event !== "executor_absent" ? job.executor : null,
      phase: component === "worker" ? phase : null,
      detail: event === "received" ? (job.reason?.detail ?? null) : null,
    };
  });
}

const PHASES: readonly (readonly [string, number, number, number])[] = [
  ["queued", 17, 15, 63],
  ["admission", 9, 8, 25],
  ["create", 640, 420, 610],
  ["identity", 58, 60, 140],
  ["schedule", 210, 190, 900],
  ["image", 1240, 900, 4200],
  ["boot", 310, 280, 620],
  ["start", 26, 24, 80],
  ["hand_over", 12, 14, 60],
  ["first_row", 840, 700, 1500],
  ["run", 178_000, 96_000, 240_000],
  ["clean_up", 2300, 2100, 5200],
];

/** How many phases have begun. */
const BEGUN: Readonly<Record<StateName, number>> = {
  stored: 1,
  parked: 3,
  invalid: 1,
  admitted: 3,
  starting: 4,
  ready: 7,
  claimed: 9,
  running: 11,
  terminal: 12,
  cleaned: 12,
};

/** The phases of a job up to its state; the last one lasts unless the job is cleaned. */
export function phasesOf(job: AssignmentView): PhaseView[] {
  const count = BEGUN[job.state];
  let at = Date.parse(job.createdAt);
  return PHASES.slice(0, count).map(([name, ms, p50, p95], index): PhaseView => {
    const started = at;
    at += ms;
    const lasts = index === count - 1 && job.state !== "cleaned" && job.state !== "invalid";
    return {
      name,
      startedAt: new Date(started).toISOString(),
      durationMs: lasts ? null : ms,
      p50Ms: p50,
      p95Ms: p95,
    };
  });
}
