import type { Clock } from "../lib/clock.ts";
import { createCondition } from "../lib/condition.ts";
import type { Engine } from "./engine.ts";
import { type BackendLoad, labelsOf, NO_BACKLOG, type Withdrawal } from "./labels.ts";
import type { BackendName } from "./model/ids.ts";

/** The labels that should stand at Gitea now, kept current. */
export interface LabelState {
  labels(): readonly string[];
  /** Why a backend's label is withheld; null while it is offered. */
  withdrawn(backend: BackendName): Withdrawal | null;
  /** Looks again now: flags have changed. */
  refresh(): void;
  /** Resolves at the next change of {@link labels}; rejects when aborted. */
  changed(signal: AbortSignal): Promise<void>;
  /** Looks again each second until aborted: waits grow without an event. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes a {@link LabelState} over what the engine knows. */
export function createLabelState(deps: {
  readonly engine: Pick<Engine, "ledger" | "flags">;
  readonly clock: Clock;
  readonly vmLabel: string;
  enabled(backend: BackendName): boolean;
  pendingLimit(backend: BackendName): number;
}): LabelState {
  const { engine, clock } = deps;
  let backlogged = NO_BACKLOG;
  const change = createCondition();

  const loadOf = (backend: BackendName): BackendLoad => {
    const stored = engine.ledger.inState(backend, "stored");
    let oldest: number | null = null;
    for (const { createdAt } of stored) oldest = Math.min(oldest ?? createdAt, createdAt);
    return {
      enabled: deps.enabled(backend),
      flags: engine.flags(backend),
      pending: stored.size,
      pendingLimit: deps.pendingLimit(backend),
      oldestWaitMs: oldest === null ? null : clock.now() - oldest,
    };
  };

  const decide = () => {
    const backends = { pod: loadOf("pod"), vm: loadOf("vm") };
    const decision = labelsOf({ backends, vmLabel: deps.vmLabel }, backlogged);
    backlogged = decision.backlogged;
    return decision;
  };

  let current = decide();
  const refresh = () => {
    const before = current.labels.join();
    current = decide();
    if (current.labels.join() === before) return;
    change.notifyAll();
  };

  return {
    labels: () => {
      refresh();
      return current.labels;
    },
    refresh,
    withdrawn: (backend) => current.withdrawn[backend],
    changed: change.wait,
    async run(signal) {
      while (!signal.aborted) {
        refresh();
        await clock.sleep(REFRESH_MS, signal).catch(() => {});
      }
    },
  };
}

const REFRESH_MS = 1_000;
