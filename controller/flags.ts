import { onAbort } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Admission } from "./admission.ts";
import type { Ledger } from "./ledger.ts";
import { type BackendName, BACKENDS } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";
import type { Pool } from "./pool.ts";
import type { ControlFlags } from "./records.ts";

/** Operators' flags as they hold in this process, and what follows for those that wait. */
export interface Flags {
  of(backend: BackendName): ControlFlags;
  /** Flags that are stored now: from here on they hold. */
  set(backend: BackendName, flags: ControlFlags): void;
  /** Whether stored tasks are admitted may have changed for another reason. */
  refresh(): void;
  /** Calls back after each {@link set}, until the signal aborts. */
  watch(listener: (backend: BackendName) => void, signal: AbortSignal): void;
}

/** Reasons that an {@link Admission} gives and takes. */
const ADMISSION_REASONS: ReadonlySet<ReasonCode> = new Set([
  "awaiting_slot",
  "backend_cordoned",
  "identity_pending",
]);

/** Makes {@link Flags}; those that are read at the start go to `admission` directly. */
export function createFlags({ admission, ledger, pools, clock }: {
  readonly admission: Admission;
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  readonly clock: Clock;
}): Flags {
  const listeners = new Set<(backend: BackendName) => void>();

  /** Those that wait say at once why; one that waits for something else keeps its reason. */
  const refresh = (name: BackendName) => {
    pools[name].refresh();
    for (const entry of ledger.inState(name, "stored")) {
      const waiting = admission.waiting(name);
      const { reason } = entry;
      if (reason !== null && !ADMISSION_REASONS.has(reason.code)) continue;
      if (reason?.code === waiting.code && reason.detail === waiting.detail) continue;
      entry.reason = { ...waiting, since: clock.now() };
      ledger.touch(entry);
    }
  };

  return {
    of: admission.flags,
    set(name, flags) {
      admission.set(name, flags);
      refresh(name);
      for (const listener of listeners) listener(name);
    },
    refresh: () => BACKENDS.forEach(refresh),
    watch(listener, signal) {
      if (signal.aborted) return;
      listeners.add(listener);
      onAbort(signal, () => listeners.delete(listener));
    },
  };
}
