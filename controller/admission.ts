import { oneLine } from "../lib/one_line.ts";
import type { BackendName } from "./model/ids.ts";
import type { ReasonCode } from "./model/reason.ts";
import { type ControlFlags, NO_FLAGS } from "./records.ts";

/** Why a stored task waits. */
export interface WaitingReason {
  readonly code: ReasonCode;
  readonly detail: string;
}

/** What keeps stored tasks from executors: operators' flags, and a facade that no executor could reach. */
export interface Admission {
  /** The flags of a backend as they were last read. */
  flags(backend: BackendName): ControlFlags;
  set(backend: BackendName, flags: ControlFlags): void;
  /** Why nothing is admitted; null while it may be. */
  closed(backend: BackendName): WaitingReason | null;
  /** Why a stored task of this backend waits now. */
  waiting(backend: BackendName): WaitingReason;
}

/**
 * Makes an {@link Admission} without any flag. A drain lets stored tasks finish unless it holds them.
 * `cutOff` says why no executor could reach the facade now; null when they can.
 */
export function createAdmission(cutOff: () => WaitingReason | null = () => null): Admission {
  const known = new Map<BackendName, ControlFlags>();
  const flags = (backend: BackendName) => known.get(backend) ?? NO_FLAGS;
  const closed = (backend: BackendName): WaitingReason | null => {
    const { drain, cordon } = flags(backend);
    const by = drain === null ? cordon : drain.hold ? drain : null;
    if (by === null) return cutOff();
    const what = by === drain ? "drained, stored jobs are held" : "cordoned";
    const note = by.note === "" ? "" : `: ${oneLine(by.note)}`;
    return { code: "backend_cordoned", detail: `${what} by ${oneLine(by.by, 100)}${note}` };
  };
  return {
    flags,
    set: (backend, next) => void known.set(backend, next),
    closed,
    waiting: (backend) =>
      closed(backend) ?? { code: "awaiting_slot", detail: "waits for a free slot" },
  };
}
