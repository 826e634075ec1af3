import { type BackendName, BACKENDS } from "./model/ids.ts";
import type { ControlFlags } from "./records.ts";

/** What decides whether a backend's label is offered to Gitea. */
export interface BackendLoad {
  /** Its worker runs here. */
  readonly enabled: boolean;
  readonly flags: ControlFlags;
  /** Stored assignments without a slot. */
  readonly pending: number;
  /** 0 = no limit. */
  readonly pendingLimit: number;
  /** Age of the oldest of them, milliseconds; null if there is none. */
  readonly oldestWaitMs: number | null;
}

/** Why a label is not offered. */
export type Withdrawal = "disabled" | "cordoned" | "backlog";

/** Outcome of {@link labelsOf}; `backlogged` is the memory that the next call needs. */
export interface LabelDecision {
  /** Bare names for Declare; empty if nothing is offered. */
  readonly labels: readonly string[];
  readonly withdrawn: Readonly<Record<BackendName, Withdrawal | null>>;
  readonly backlogged: Backlogged;
}

/** Backends whose label was withdrawn for their backlog and has not come back yet. */
export type Backlogged = Readonly<Record<BackendName, boolean>>;

/** At start: nothing is withdrawn. */
export const NO_BACKLOG: Backlogged = { pod: false, vm: false };

/** A stored task that waits longer than this has its backend's label withdrawn, milliseconds. */
export const MAX_OLDEST_WAIT_MS = 20 * 60_000;

/**
 * The labels to declare: `self-hosted` first, then `pod`, then `vm` or `vm-dev`. A label is
 * withdrawn while its backend is cordoned or drained, and from the pending limit, or a wait of over
 * 20 minutes, until the backlog is at half the limit and nobody waits so long.
 */
export function labelsOf(
  input: {
    readonly backends: Readonly<Record<BackendName, BackendLoad>>;
    readonly vmLabel: string;
  },
  before: Backlogged,
): LabelDecision {
  const backlogged = {
    pod: isBacklogged(input.backends.pod, before.pod),
    vm: isBacklogged(input.backends.vm, before.vm),
  };
  const withdrawn = {
    pod: withdrawal(input.backends.pod, backlogged.pod),
    vm: withdrawal(input.backends.vm, backlogged.vm),
  };
  const names = {
    pod: "pod",
    vm: input.backends.vm.flags.label?.value ?? input.vmLabel,
  };
  const offered = BACKENDS.filter((backend) => withdrawn[backend] === null);
  return {
    labels: offered.length === 0 ? [] : ["self-hosted", ...offered.map((name) => names[name])],
    withdrawn,
    backlogged,
  };
}

function isBacklogged(load: BackendLoad, before: boolean): boolean {
  const { oldestWaitMs, pending, pendingLimit } = load;
  if (oldestWaitMs !== null && oldestWaitMs > MAX_OLDEST_WAIT_MS) return true;
  if (pendingLimit === 0) return false;
  return before ? pending * 2 > pendingLimit : pending >= pendingLimit;
}

function withdrawal(load: BackendLoad, backlogged: boolean): Withdrawal | null {
  if (!load.enabled) return "disabled";
  if (load.flags.cordon !== null || load.flags.drain !== null) return "cordoned";
  return backlogged ? "backlog" : null;
}
