import {
  type Backend,
  BackendError,
  type BackendErrorCode,
  type Call,
  type Ending,
  type Executor,
  type ExecutorChange,
  type ExecutorSpec,
  type UntoldEnds,
} from "../../controller/backend.ts";
import type { BackendName, ExecutorName } from "../../controller/model/ids.ts";
import { onAbort } from "../../lib/abortable.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";

/** Methods that can be made to fail. */
export type FakeMethod = "find" | "create" | "bindIdentity" | "markTerminal" | "list" | "delete";

/** Switches; set them at any time. */
export interface FakeFaults {
  /** These methods throw this code until taken out. */
  readonly failing: Map<FakeMethod, BackendErrorCode>;
  /** Called at the start of every method: throw, or wait, to interfere. */
  before: ((method: FakeMethod, name: ExecutorName | null, call: Call) => Promise<void>) | null;
  /** The next create is done, but throws `unknown_outcome`. */
  loseNextAnswer: boolean;
  /** New executors have no identity target until {@link FakeBackend.giveTarget}. */
  withholdTarget: boolean;
  /** Executors that are deleted stay, terminating, until {@link FakeBackend.vanish}. */
  holdDeletes: boolean;
  /** `watch` reports nothing. */
  muteWatch: boolean;
}

/** A backend in memory. */
export interface FakeBackend extends Backend {
  readonly faults: FakeFaults;
  /** What there is, by name. */
  readonly executors: ReadonlyMap<ExecutorName, Executor>;
  /** SPIFFE IDs that are bound, by name. */
  readonly bound: ReadonlyMap<ExecutorName, string>;
  /** Launch environments, by name. */
  readonly environments: ReadonlyMap<ExecutorName, Readonly<Record<string, string>>>;
  /** Methods as they were called, with the name they were about. */
  readonly calls: readonly { readonly method: FakeMethod; readonly name: ExecutorName | null }[];
  /** The most executors that ever were at once, ended ones not counted. */
  readonly peak: number;
  /** The program ends. */
  end(name: ExecutorName, ending?: Partial<Ending>): void;
  /** The object disappears, as after an eviction. */
  vanish(name: ExecutorName): void;
  /** The watch tells this, true or not: news of a real server can be late. */
  tell(change: ExecutorChange): void;
  /** The identity target becomes known. */
  giveTarget(name: ExecutorName): void;
  /** Somebody deletes its identity entry. */
  unbind(name: ExecutorName): void;
  /** Labels and annotations are lost. */
  corrupt(name: ExecutorName): void;
  /** Puts an object there that this controller did not make. */
  put(executor: Executor): void;
  /** Another object on the same executors, without the faults. */
  reopen(): FakeBackend;
}

/** What outlives a backend object. */
interface World {
  readonly executors: Map<ExecutorName, Executor>;
  readonly bound: Map<ExecutorName, string>;
  readonly environments: Map<ExecutorName, Readonly<Record<string, string>>>;
  readonly calls: { method: FakeMethod; name: ExecutorName | null }[];
  readonly listeners: Set<(change: ExecutorChange) => void>;
  sequence: number;
  peak: number;
}

/** Makes a {@link FakeBackend}. */
export function createFakeBackend(
  options: {
    readonly name?: BackendName;
    readonly clock?: Clock;
    /** Ends are not told, and identities not taken away, as with OpenSandbox. */
    readonly untoldEnds?: UntoldEnds;
  } = {},
): FakeBackend {
  const { name = "pod", untoldEnds, clock = systemClock } = options;
  return open(
    { name, ...untoldEnds === undefined ? {} : { untoldEnds, bindsForGood: true } },
    clock,
    {
      executors: new Map(),
      bound: new Map(),
      environments: new Map(),
      calls: [],
      listeners: new Set(),
      sequence: 0,
      peak: 0,
    },
  );
}

function open(
  backend: Pick<Backend, "name" | "untoldEnds" | "bindsForGood">,
  clock: Clock,
  world: World,
): FakeBackend {
  const { executors, bound, environments, listeners } = world;
  const faults: FakeFaults = {
    failing: new Map(),
    before: null,
    loseNextAnswer: false,
    withholdTarget: false,
    holdDeletes: false,
    muteWatch: false,
  };

  const set = (executor: Executor) => {
    executors.set(executor.name, executor);
    const running = [...executors.values()].filter(({ ended }) => ended === null).length;
    world.peak = Math.max(world.peak, running);
    for (const listener of listeners) listener({ name: executor.name, executor });
  };

  const drop = (name: ExecutorName) => {
    if (!executors.delete(name)) return;
    environments.delete(name);
    for (const listener of listeners) listener({ name, executor: null });
  };

  const change = (name: ExecutorName, part: Partial<Executor>) => {
    const executor = executors.get(name);
    if (executor !== undefined) set({ ...executor, ...part });
  };

  const begin = async (method: FakeMethod, name: ExecutorName | null, call: Call) => {
    call.signal.throwIfAborted();
    world.calls.push({ method, name });
    await faults.before?.(method, name, call);
    await Promise.resolve();
    call.signal.throwIfAborted();
    const code = faults.failing.get(method);
    if (code !== undefined) throw new BackendError(code, `Do ${method}: the test wants ${code}`);
  };

  const same = ({ name, uid }: Pick<Executor, "name" | "uid">) => {
    const executor = executors.get(name);
    return executor?.uid === uid ? executor : undefined;
  };

  return {
    ...backend,
    faults,
    executors,
    bound,
    environments,
    calls: world.calls,
    get peak() {
      return world.peak;
    },
    async find(name, call) {
      await begin("find", name, call);
      return executors.get(name);
    },
    async create(spec: ExecutorSpec, call) {
      await begin("create", spec.name, call);
      if (executors.has(spec.name)) {
        throw new BackendError("conflict", `Make executor "${spec.name}": the name is taken`);
      }
      const executor: Executor = {
        name: spec.name,
        uid: `fake-${++world.sequence}`,
        phase: "running",
        metadata: spec.metadata,
        createdAt: clock.now(),
        identityTarget: faults.withholdTarget ? null : `target-${world.sequence}`,
        terminating: false,
        ended: null,
        terminal: false,
        node: null,
        waiting: null,
      };
      environments.set(spec.name, spec.environment);
      set(executor);
      if (faults.loseNextAnswer) {
        faults.loseNextAnswer = false;
        throw new BackendError("unknown_outcome", `Make executor "${spec.name}": no answer came`);
      }
      return executor;
    },
    async bindIdentity(executor, assignment, call) {
      await begin("bindIdentity", executor.name, call);
      const current = same(executor);
      if (current === undefined) {
        throw new BackendError("conflict", `Bind "${executor.name}": it is gone`);
      }
      const stated = Object.entries(current.metadata.annotations)
        .find(([key]) => key.endsWith("/spiffe-id"))?.[1];
      if (stated !== assignment.identity.spiffeId) {
        const message = `Bind "${executor.name}": it was made for another SPIFFE ID`;
        throw new BackendError("invalid", message, { retryable: false });
      }
      bound.set(executor.name, assignment.identity.spiffeId);
    },
    async markTerminal(executor, call) {
      await begin("markTerminal", executor.name, call);
      const current = same(executor);
      if (current === undefined || current.terminal) return;
      const { labels } = current.metadata;
      const prefix = Object.keys(labels).find((key) => key.endsWith("/runner"))?.slice(0, -7);
      const marked = prefix === undefined ? labels : { ...labels, [`${prefix}/terminal`]: "true" };
      set({ ...current, terminal: true, metadata: { ...current.metadata, labels: marked } });
    },
    async list(call) {
      await begin("list", null, call);
      return [...executors.values()].map((executor) => ({
        ...executor,
        identityBound: bound.has(executor.name),
      }));
    },
    async *watch({ signal }) {
      const queue: ExecutorChange[] = [];
      let wake = () => {};
      const listener = (seen: ExecutorChange) => {
        if (!faults.muteWatch) queue.push(seen);
        wake();
      };
      listeners.add(listener);
      using _waking = onAbort(signal, () => wake());
      try {
        while (!signal.aborted) {
          const next = queue.shift();
          if (next !== undefined) yield next;
          else await new Promise<void>((resolve) => wake = resolve);
        }
      } finally {
        listeners.delete(listener);
      }
    },
    async delete(executor, call) {
      await begin("delete", executor.name, call);
      const current = same(executor);
      if (current === undefined) {
        if (!executors.has(executor.name)) bound.delete(executor.name);
        return;
      }
      if (faults.holdDeletes) {
        return change(executor.name, { terminating: true, phase: "terminating" });
      }
      bound.delete(executor.name);
      drop(executor.name);
    },
    end(name, ending = {}) {
      const { code = "executor_failed", exitCode = 1, lastLines = [] } = ending;
      const detail = ending.detail ?? `exit code ${exitCode}`;
      change(name, { phase: "ended", ended: { code, detail, exitCode, lastLines } });
    },
    vanish(name) {
      bound.delete(name);
      drop(name);
    },
    tell: (news) => listeners.forEach((listener) => listener(news)),
    giveTarget: (name) => change(name, { identityTarget: `target-${name}` }),
    unbind: (name) => void bound.delete(name),
    corrupt: (name) =>
      change(name, { phase: "unreadable", metadata: { labels: {}, annotations: {} } }),
    put: set,
    reopen: () => open(backend, clock, world),
  };
}
