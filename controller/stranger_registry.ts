import type { Logger } from "../lib/logger.ts";
import type { Admission } from "./admission.ts";
import type { Executor } from "./backend.ts";
import type { Ledger } from "./ledger.ts";
import type { BackendName } from "./model/ids.ts";
import { createStrangers, type Identified, type Stranger, type Strangers } from "./strangers.ts";
import type { Worker } from "./worker.ts";
import type { Workers } from "./workers.ts";

/** Executors without an assignment, of every backend that is enabled here. */
export interface StrangerRegistry {
  /** Throws for a backend that is not enabled here. */
  of(name: BackendName): Strangers;
  /** As they are shown: one that an operator has given up is `forgotten`, and holds no slot. */
  shown(name: BackendName): readonly Stranger[];
  /** Deletes exactly this one; throws `BackendError`. */
  remove(
    name: BackendName,
    executor: Pick<Executor, "name" | "uid">,
    signal: AbortSignal,
  ): Promise<"gone" | "leaving">;
}

/** Makes a {@link StrangerRegistry}. */
export function createStrangerRegistry(deps: {
  readonly workers: Workers;
  readonly ledger: Ledger;
  readonly admission: Admission;
  readonly logger: Logger;
  identify(executor: Executor): Identified;
  /** Throws when this process may not act any more. */
  guard(): void;
  /** Those of this backend have changed. */
  onChange(name: BackendName): void;
}): StrangerRegistry {
  const { workers, ledger, admission, guard } = deps;

  /** Made for an assignment that is over: marked and ended, or known to have been ours. */
  const isLeftover = async (worker: Worker, executor: Executor): Promise<boolean> => {
    const identified = deps.identify(executor);
    if (identified.kind !== "ours") return false;
    if (executor.terminal && executor.ended !== null) return true;
    const entry = ledger.get(identified.info.id);
    if (entry?.state.kind !== "cleaned") return false;
    return await worker.isOurs(entry, executor) || await worker.isSpare(entry, executor);
  };

  const registry = new Map(
    workers.all().map((worker) => {
      const { backend } = worker;
      const strangers = createStrangers({
        ...deps,
        backend,
        isLeftover: (executor) => isLeftover(worker, executor),
        onChange: () => deps.onChange(backend.name),
      });
      return [backend.name, strangers];
    }),
  );

  return {
    of(name) {
      const strangers = registry.get(name);
      if (strangers === undefined) throw new Error(`Use backend "${name}": it is not enabled here`);
      return strangers;
    },
    shown(name) {
      const list = registry.get(name)?.list() ?? [];
      const { forgotten = [] } = admission.flags(name);
      if (forgotten.length === 0) return list;
      return list.map((stranger) => {
        const given = forgotten.find(({ uid }) => uid === stranger.executor.uid);
        return given === undefined || stranger.ownership !== "unknown" ? stranger : {
          ...stranger,
          ownership: "forgotten",
          why: `${stranger.why}; given up by ${given.by}, it holds no slot`,
        };
      });
    },
    async remove(name, executor, signal) {
      guard();
      const { backend } = workers.of(name);
      await backend.delete(executor, { signal });
      const left = await backend.find(executor.name, { signal });
      if (left?.uid === executor.uid) return "leaving";
      registry.get(name)?.forget(executor.name);
      return "gone";
    },
  };
}
