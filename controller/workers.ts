import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Backend } from "./backend.ts";
import type { Entry } from "./entry.ts";
import type { BackendName, ExecutorName } from "./model/ids.ts";
import { silenceOf } from "./silence.ts";
import { createWorker, type WorkerDeps } from "./create_worker.ts";
import type { Worker } from "./worker.ts";

/** The worker of each backend that is enabled here. */
export interface Workers {
  all(): readonly Worker[];
  /** Throws for a backend that is not enabled here. */
  of(name: BackendName): Worker;
  /**
   * True when the executor of an assignment cannot run its job any more. A backend that does not answer
   * within a second holds up no claim: its silence proves nothing. Rejects when `signal` aborts.
   */
  isGone(entry: Entry, signal: AbortSignal): Promise<boolean>;
}

const PRESENCE_MS = 1_000;

/** Makes {@link Workers}. */
export function createWorkers(
  deps: Omit<WorkerDeps, "backend" | "isSilent"> & {
    readonly backends: readonly Backend[];
    readonly clock: Clock;
    nameOf(info: Entry["info"]): ExecutorName;
    /** When the facade began to listen, monotonic; null while it does not. */
    facadeSince(): number | null;
  },
): Workers {
  const { backends, clock, facadeSince } = deps;
  const workers = new Map(backends.map((backend) => {
    const isSilent = (entry: Entry) =>
      silenceOf(entry, { now: clock.monotonic(), facadeSince: facadeSince() }) >=
        (backend.untoldEnds?.silenceMs ?? Infinity);
    return [backend.name, createWorker({ ...deps, backend, isSilent })];
  }));

  function of(name: BackendName): Worker {
    const worker = workers.get(name);
    if (worker === undefined) throw new Error(`Use backend "${name}": it is not enabled here`);
    return worker;
  }

  return {
    all: () => [...workers.values()],
    of,
    async isGone({ info, executor }, signal) {
      using patience = clock.timeout(PRESENCE_MS);
      const stop = AbortSignal.any([signal, patience.signal]);
      try {
        const { backend } = of(info.backend);
        const found = await abortable(backend.find(deps.nameOf(info), { signal: stop }), stop);
        // One that is being deleted would lose the job.
        return found === undefined || found.uid !== executor?.uid || found.ended !== null ||
          found.terminating;
      } catch {
        signal.throwIfAborted();
        return false;
      }
    },
  };
}
