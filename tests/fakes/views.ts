import { onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { BackendName } from "../../controller/model/ids.ts";
import type {
  AssignmentView,
  BackendView,
  Change,
  ExecutorView,
  HistoryEntryView,
  LeaderView,
  Page,
  PageQuery,
  SourceView,
  StatusView,
  Views,
} from "../../controller/views/views.ts";
import { auditOf, canaryOf, healthOf, hourOf, operationsOf, strangersOf } from "./sample_pages.ts";
import {
  eventsOf,
  HOSTILE,
  idOf,
  jobOf,
  type JobSketch,
  phasesOf,
  SKETCHES,
} from "./sample_jobs.ts";

/** Views that a test fills and changes. */
export interface FakeViews extends Views {
  /** Makes or replaces a job and tells the subscribers. */
  put(sketch: JobSketch): AssignmentView;
  /** A job as lists show it. */
  find(id: string): AssignmentView | undefined;
  /** Takes a job away and tells the subscribers. */
  drop(task: number): void;
  /** Tells the subscribers of a change. */
  tell(change: Change): void;
  /** Status from now on, merged over the sample. */
  override(status: Partial<StatusView>): void;
}

/** Options of {@link createFakeViews}. */
export interface FakeViewsOptions {
  readonly jobs?: readonly JobSketch[];
  /** Further jobs that wait for a slot. */
  readonly waiting?: number;
}

/** Makes {@link FakeViews}: by default two backends, six sources and jobs of every kind. */
export function createFakeViews(
  deps: { readonly clock: Pick<Clock, "now"> },
  options: FakeViewsOptions = {},
): FakeViews {
  const started = deps.clock.now();
  const jobs = new Map<string, AssignmentView>();
  const listeners = new Set<(change: Change) => void>();
  let overrides: Partial<StatusView> = {};
  for (const sketch of options.jobs ?? SKETCHES) add(sketch);
  for (let i = 0; i < (options.waiting ?? 0); i++) {
    add({
      task: 10_000 + i,
      state: "stored",
      repository: `team-${i % 40}/service-${i % 7}`,
      job: `job-${i}`,
      age: 11 - i / 1000,
      position: i + 3,
      reason: ["awaiting_slot", "8 of 8 pod slots in use"],
    });
  }

  function add(sketch: JobSketch): AssignmentView {
    const job = jobOf(sketch, deps.clock.now());
    jobs.set(job.id, job);
    return job;
  }
  const tell = (change: Change) => listeners.forEach((listener) => listener(change));
  const iso = (secondsAgo: number) => new Date(deps.clock.now() - secondsAgo * 1000).toISOString();

  const backends = () =>
    (["pod", "vm"] as const).map((name) => backendOf(name, [...jobs.values()], started));
  /** Runs a change of the jobs and tells of the backends that it changed. */
  function changing<T>(change: () => T): T {
    const before = backends();
    const result = change();
    for (const [index, now] of backends().entries()) {
      const was = before[index];
      if (was !== undefined && JSON.stringify(was) !== JSON.stringify(now)) {
        tell({ kind: "backend", old: was, new: now });
      }
    }
    return result;
  }
  const leader = (): LeaderView => ({
    mode: "kubernetes",
    holder: "gdr-7d4b9c6f5-x2x8k_5f0c1a52",
    self: "gdr-7d4b9c6f5-x2x8k",
    leading: true,
    epoch: 7,
    transitions: 6,
    acquiredAt: new Date(started - 86_400_000).toISOString(),
    renewedAt: iso(1),
    leaseSeconds: 15,
    replicas: [
      { name: "gdr-7d4b9c6f5-x2x8k", ready: true, leading: true, seenAt: iso(0) },
      { name: "gdr-7d4b9c6f5-q9rlm", ready: null, leading: false, seenAt: null },
    ],
  });
  const status = (): StatusView => ({
    version: "0.1.0",
    nextFetchAt: iso(-2),
    profile: "production",
    leader: leader(),
    sources: {
      gitea: source("up", 86_000, 800, null),
      nats: source("up", 86_000, 120, null),
      kubernetes: source("degraded", 74, 2400, `watch pods: 410 Gone ${HOSTILE.html}`),
      spire: source("up", 4000, 9000, null),
      opensandbox: source("up", 4000, 4100, null),
    },
    backends: backends(),
    ready: true,
    ...overrides,
  });
  function source(
    state: SourceView["state"],
    since: number,
    ageMs: number,
    lastError: string | null,
  ): SourceView {
    return { state, since: new Date(started - since * 1000).toISOString(), ageMs, lastError };
  }

  return {
    status,
    backends: () => status().backends,
    backend: (name) => status().backends.find((backend) => backend.name === name),
    hour: (name) => hourOf(name, deps.clock.now()),
    // deno-lint-ignore require-await -- a bad cursor must reject, not throw
    async assignments({ backend, state, states, repository, ...query }) {
      const found = [...jobs.values()].filter((job) =>
        (backend === undefined || job.backend === backend) &&
        (state === undefined || job.state === state) &&
        (states === undefined || states.includes(job.state)) &&
        (repository === undefined || job.repository.toLowerCase() === repository.toLowerCase())
      );
      const ended = ["cleaned", "invalid"];
      const newest = (state === undefined ? states ?? ["stored"] : [state])
        .every((name) => ended.includes(name));
      found.sort((a, b) =>
        newest ? compare(b.updatedAt, a.updatedAt) : compare(a.createdAt, b.createdAt)
      );
      return pageOf(found, query);
    },
    assignment(id) {
      const job = jobs.get(id);
      return Promise.resolve(
        job && {
          ...job,
          events: eventsOf(job),
          phases: phasesOf(job),
          lastLines: job.result === "failure" || job.state === "parked"
            ? ["::group::Run npm test", HOSTILE.ansi, HOSTILE.html, "Killed", "exit code 137"]
            : [],
          traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
        },
      );
    },
    // deno-lint-ignore require-await -- a bad cursor must reject, not throw
    async executors({ backend, recovered, ...query }) {
      const found = [...jobs.values()].flatMap((job, index) => executorOf(job, index, started));
      const all = [...found, ...jobs.size === 0 ? [] : strangersOf(started)].filter((
        e,
      ) =>
        (backend === undefined || e.backend === backend) &&
        (recovered === undefined || (e.recovered !== null) === recovered)
      );
      return pageOf(all, query);
    },
    leader: () => status().leader,
    canary: () => canaryOf(deps.clock.now()),
    // deno-lint-ignore require-await -- a bad cursor must reject, not throw
    async history({ backend, event, assignment, ...query }) {
      const entries = [...jobs.values()].flatMap((job) =>
        eventsOf(job).map((event): HistoryEntryView => ({
          ...event,
          assignmentId: job.id,
          backend: job.backend,
        }))
      ).filter((entry) =>
        (backend === undefined || entry.backend === backend) &&
        (event === undefined || entry.event === event) &&
        (assignment === undefined || entry.assignmentId === assignment)
      );
      return pageOf(entries.sort((a, b) => compare(b.at, a.at)), query);
    },
    // deno-lint-ignore require-await -- a bad cursor must reject, not throw
    async audit({ actor, action, target, result, ...query }) {
      const wanted = { actor, action, target, result };
      return pageOf(
        auditOf(deps.clock.now()).filter((entry) =>
          Object.entries(wanted).every(([name, value]) =>
            value === undefined || String(Reflect.get(entry, name)) === value
          )
        ),
        query,
      );
    },
    operation: (id) =>
      Promise.resolve(operationsOf(deps.clock.now()).find((operation) => operation.id === id)),
    operations: ({ target, state, ...query }) =>
      Promise.resolve(pageOf(
        operationsOf(deps.clock.now()).filter((operation) =>
          (target === undefined || operation.target === target) &&
          (state === undefined || operation.state === state)
        ),
        query,
      )),
    health: () => healthOf(deps.clock.now()),
    recheck: () => Promise.resolve(),
    config: () => ({
      GITEA_URL: "https://git.example.org",
      GITEA_RUNNER_TOKEN: "[secret]",
      NATS_URL: null,
    }),
    subscribe(listener, signal) {
      listeners.add(listener);
      onAbort(signal, () => listeners.delete(listener));
    },
    find: (id) => jobs.get(id),
    put(sketch) {
      const old = jobs.get(idOf(sketch.task)) ?? null;
      return changing(() => {
        const job = add(sketch);
        tell({ kind: "assignment", old, new: job });
        return job;
      });
    },
    drop(task) {
      const job = jobs.get(idOf(task));
      if (job === undefined) return;
      changing(() => {
        jobs.delete(job.id);
        tell({ kind: "assignment", old: job, new: null });
      });
    },
    tell,
    override(changed) {
      overrides = { ...overrides, ...changed };
    },
  };
}

function executorOf(job: AssignmentView, index: number, now: number): ExecutorView[] {
  if (job.executor === null || job.state === "cleaned") return [];
  const claimed = ["claimed", "running", "terminal"].includes(job.state);
  return [{
    name: job.executor,
    uid: `0e9d4c1f-77a5-4f0e-9a44-${job.taskId.padStart(12, "0")}`,
    backend: job.backend,
    assignmentId: job.id,
    phase: claimed ? "Running" : "Pending",
    node: claimed ? `node-${1 + index % 3}` : null,
    createdAt: job.createdAt,
    heartbeatAt: claimed ? new Date(now - 1000 * (index % 9)).toISOString() : null,
    claimed,
    terminal: job.state === "terminal",
    ownership: "ours",
    why: null,
    recovered: claimed && index % 3 === 0
      ? {
        at: new Date(now - 900_000).toISOString(),
        proof: index % 2 === 0 ? "record" : "heartbeat",
      }
      : null,
  }];
}

function backendOf(name: BackendName, all: readonly AssignmentView[], now: number): BackendView {
  const jobs = all.filter((job) => job.backend === name);
  const holding = ["admitted", "starting", "ready", "claimed", "running", "terminal"];
  const taken = jobs.filter((job) => holding.includes(job.state));
  const capacity = name === "pod" ? 8 : 3;
  const unknown = name === "vm" ? 1 : 0;
  const count = (...states: string[]) => jobs.filter((job) => states.includes(job.state)).length;
  return {
    name,
    label: name === "pod" ? "pod" : "vm-dev",
    capacity,
    used: taken.length + unknown,
    free: Math.max(0, capacity - taken.length - unknown),
    waiting: count("stored"),
    running: count("claimed", "running"),
    parked: count("parked"),
    unknown,
    numPending: count("stored"),
    numAckPending: count("admitted", "starting", "ready"),
    cordoned: name === "vm"
      ? {
        by: "mira",
        at: new Date(now - 720_000).toISOString(),
        note: `kernel update ${HOSTILE.html}`,
      }
      : null,
    drain: null,
    overrides: {
      capacity: name === "pod" ? null : {
        value: 3,
        replaced: 4,
        by: "mira",
        at: new Date(now - 4_000_000).toISOString(),
        note: "one node less",
      },
      label: null,
    },
    startMs: name === "pod" ? { p50: 1840, p95: 6200 } : { p50: 9400, p95: null },
    failures: name === "pod" ? { image_pull: 3, executor_lost: 1 } : { executor_failed: 5 },
    slots: taken.sort((a, b) => compare(a.createdAt, b.createdAt)).map((job) => ({
      assignmentId: job.id,
      executor: job.executor,
      state: job.state,
      since: job.updatedAt,
    })),
  };
}

function pageOf<T>(all: readonly T[], { limit, cursor }: PageQuery): Page<T> {
  const from = cursor === null ? 0 : Number(/^from(\d+)$/.exec(cursor)?.[1] ?? NaN);
  if (Number.isNaN(from)) throw new RangeError(`Take the cursor from nextCursor: "${cursor}"`);
  const end = from + limit;
  return {
    items: all.slice(from, end),
    nextCursor: end < all.length ? `from${end}` : null,
    total: all.length,
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
