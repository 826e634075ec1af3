import type { Clock } from "../../lib/clock.ts";
import type { Backend } from "../backend.ts";
import type { Gitea } from "../gitea.ts";
import type { AssignmentQueue, Demand, StoredMessage } from "../queue.ts";
import type { ControlStore, Records } from "../records.ts";

/**
 * The ports of a leader: each call that has an effect first makes sure that this process still leads.
 * `guard` throws when it may not act, as after a stop (SIGSTOP) that outlasted the lease; the call then
 * rejects with that error and nothing has left the process. Reads pass.
 */
export interface GuardedPorts {
  readonly gitea: Gitea;
  readonly queue: AssignmentQueue;
  readonly records: Records;
  readonly control: ControlStore;
  readonly backends: readonly Backend[];
}

/** Between looks whether this process leads again, when it was not sure. */
const LOOK_MS = 1_000;

/** Puts `guard` before every effect of `ports`. */
export function guardPorts(
  ports: GuardedPorts,
  deps: {
    readonly clock: Clock;
    guard(): void;
    /** The one exception: a task that was fetched is stored, whoever leads meanwhile. */
    readonly publish: AssignmentQueue["publish"];
  },
): GuardedPorts {
  const { guard } = deps;
  return {
    gitea: guardGitea(ports.gitea, guard),
    queue: guardQueue(ports.queue, deps),
    records: guardRecords(ports.records, guard),
    control: {
      ...ports.control,
      takeOver: first(guard, ports.control.takeOver),
    },
    backends: ports.backends.map((backend) => guardBackend(backend, guard)),
  };
}

/** The same function, after `guard`; what that throws is a rejection. */
function first<A extends readonly unknown[], T>(
  guard: () => void,
  call: (...args: A) => Promise<T>,
): (...args: A) => Promise<T> {
  return async (...args) => {
    guard();
    return await call(...args);
  };
}

function guardGitea(gitea: Gitea, guard: () => void): Gitea {
  return {
    declare: first(guard, gitea.declare),
    fetchTask: first(guard, gitea.fetchTask),
    updateTask: first(guard, gitea.updateTask),
    updateLog: first(guard, gitea.updateLog),
  };
}

function guardQueue(
  queue: AssignmentQueue,
  { clock, guard, publish }: {
    readonly clock: Clock;
    guard(): void;
    readonly publish: AssignmentQueue["publish"];
  },
): AssignmentQueue {
  const leads = () => {
    try {
      guard();
      return true;
    } catch {
      return false;
    }
  };
  const guardMessage = (message: StoredMessage): StoredMessage => ({
    ...message,
    ack: first(guard, message.ack),
    terminate: first(guard, message.terminate),
    nak(delayMs) {
      if (leads()) message.nak(delayMs);
    },
    inProgress() {
      if (leads()) message.inProgress();
    },
  });
  const guardDemand = (demand: Demand): Demand => {
    /** Whoever asked was told of no room, because it was not sure who leads. */
    let withheld = false;
    return {
      free() {
        if (leads()) return demand.free();
        withheld = true;
        return 0;
      },
      async changed(signal) {
        const end = new AbortController();
        const either = AbortSignal.any([signal, end.signal]);
        // Also for one who asked while it was sure: it may be sure again before anybody looks.
        const restored = async () => {
          do await clock.sleep(LOOK_MS, either); while (!withheld || !leads());
          withheld = false;
        };
        const first = [demand.changed(either), restored()];
        try {
          await Promise.race(first);
        } finally {
          end.abort();
          await Promise.allSettled(first);
        }
      },
    };
  };
  return {
    get maxPayload() {
      return queue.maxPayload;
    },
    publish,
    async *consume(backend, demand, call) {
      for await (const message of queue.consume(backend, guardDemand(demand), call)) {
        yield guardMessage(message);
      }
    },
    resetConsumer: first(guard, queue.resetConsumer),
    counts: queue.counts,
    list: queue.list,
    remove: first(guard, queue.remove),
  };
}

function guardRecords(records: Records, guard: () => void): Records {
  return {
    get: records.get,
    list: records.list,
    create: first(guard, records.create),
    update: first(guard, records.update),
    delete: first(guard, records.delete),
  };
}

function guardBackend(backend: Backend, guard: () => void): Backend {
  // What it says of itself is said by whoever acts for it.
  return {
    ...backend,
    create: first(guard, backend.create),
    bindIdentity: first(guard, backend.bindIdentity),
    markTerminal: first(guard, backend.markTerminal),
    delete: first(guard, backend.delete),
    ...backend.tidy === undefined ? {} : { tidy: first(guard, backend.tidy) },
  };
}
