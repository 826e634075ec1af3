import type { Ending, Executor } from "../../controller/backend.ts";
import type { ExecutorName, Instance } from "../../controller/model/ids.ts";
import type { Clock } from "../../lib/clock.ts";
import type { MetadataCodec } from "./metadata_codec.ts";
import type { Sandbox } from "./sandboxes.ts";
import { executorOf } from "./status.ts";

/**
 * Executors of which the server keeps nothing: those that failed while they started, and those whose
 * lifetime is over. Their end is told from here until they are deleted. In memory only: after a restart
 * they are simply gone.
 */
export interface Tombstones {
  /** A sandbox that is there now: what was left of an earlier one of its name is told no more. */
  see(sandbox: Sandbox): void;
  /** The one of that name that was seen last, and has not vanished since. */
  last(name: ExecutorName): Sandbox | undefined;
  /** Those of ours that were seen, and are not among these. */
  missing(sandboxes: readonly Sandbox[]): readonly Sandbox[];
  /** The one that was seen last is surely gone. */
  vanished(name: ExecutorName): void;
  /** One that came to nothing. */
  add(executor: Executor): void;
  /** What is left of an executor that is not there; undefined when there is nothing to tell. */
  of(name: ExecutorName): Executor | undefined;
  all(): Executor[];
  /** It has been deleted by us. */
  forget(executor: Pick<Executor, "name" | "uid">): void;
}

/** The controller asks within a minute or two. */
const KEPT_MS = 15 * 60_000;
const KEPT = 1_000;
/** Between our clock and the server's. */
const TOLERANCE_MS = 30_000;

/** Makes {@link Tombstones}. */
export function createTombstones(options: {
  readonly clock: Clock;
  readonly codec: MetadataCodec;
  readonly instance: Instance;
  readonly timeoutMs: number;
}): Tombstones {
  const { clock, codec, instance } = options;
  const known = new Map<ExecutorName, Sandbox>();
  const left = new Map<ExecutorName, { readonly executor: Executor; readonly since: number }>();

  const add = (executor: Executor) => {
    left.set(executor.name, { executor, since: clock.monotonic() });
    for (const name of left.keys()) {
      if (left.size <= KEPT) break;
      left.delete(name);
    }
  };

  const vanished = (name: ExecutorName) => {
    const sandbox = known.get(name);
    known.delete(name);
    if (sandbox?.expiresAt == null || clock.now() < sandbox.expiresAt - TOLERANCE_MS) return;
    const seconds = Math.round(options.timeoutMs / 1000);
    const executor = executorOf(sandbox, codec);
    // How its program had ended says more than that its sandbox is gone by now.
    if (executor.ended !== null) return add(executor);
    add(tombstone(executor, {
      phase: "Expired",
      code: "executor_lost",
      detail: `the lifetime of its sandbox is over (VM_TIMEOUT_SECONDS: ${seconds} s)`,
    }));
  };

  const prune = () => {
    for (const [name, { since }] of left) {
      if (clock.monotonic() - since >= KEPT_MS) left.delete(name);
    }
  };

  return {
    see(sandbox) {
      if (!codec.isOf(sandbox, instance)) return;
      const name = codec.nameOf(sandbox);
      known.set(name, sandbox);
      // One that still goes away after its start has failed says less than that failure.
      if (sandbox.state !== "Stopping") left.delete(name);
    },
    last: (name) => known.get(name),
    missing(sandboxes) {
      const ids = new Set(sandboxes.map(({ id }) => id));
      return [...known.values()].filter(({ id }) => !ids.has(id));
    },
    vanished,
    add,
    of(name) {
      prune();
      return left.get(name)?.executor;
    },
    all() {
      prune();
      return [...left.values()].map(({ executor }) => executor);
    },
    forget({ name, uid }) {
      if (known.get(name)?.id === uid) known.delete(name);
      if (left.get(name)?.executor.uid === uid) left.delete(name);
    },
  };
}

/** An executor that is not there any more, or never came to be, and whose end must be told. */
export function tombstone(
  executor: Pick<Executor, "name" | "uid" | "metadata" | "createdAt">,
  ending: Pick<Ending, "code" | "detail"> & { readonly phase: string },
): Executor {
  const { phase, code, detail } = ending;
  return {
    ...executor,
    phase,
    identityTarget: null,
    terminating: false,
    ended: { code, detail, exitCode: null, lastLines: [] },
    terminal: false,
    node: null,
    waiting: null,
  };
}
