import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { WaitingReason } from "./admission.ts";
import type { Backend, Executor } from "./backend.ts";
import type { Gitea } from "./gitea.ts";
import type { JournalEntry } from "./journal.ts";
import type { Ledger } from "./ledger.ts";
import type { LifecycleTimes } from "./lifecycle.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { Delays } from "./model/decision.ts";
import type { AssignmentId, BackendName, Instance } from "./model/ids.ts";
import type { ExecutorEvents, Offers } from "./offers.ts";
import type { PhaseStatistics } from "./views/phases.ts";
import type { Pool } from "./pool.ts";
import type { Release } from "./release.ts";
import type { RetryOutcome } from "./retry.ts";
import type { Opened } from "./processor.ts";
import type { AssignmentQueue } from "./queue.ts";
import type { ControlFlags, ControlStore, Records } from "./records.ts";
import type { Recorder } from "./recorder.ts";
import type { Identified, Stranger } from "./strangers.ts";
import type { Ownership } from "./worker.ts";

/** What one controller process is made of. */
export interface EngineDeps {
  readonly gitea: Gitea;
  readonly queue: AssignmentQueue;
  readonly records: Records;
  readonly control: ControlStore;
  readonly offers: Offers;
  readonly backends: readonly Backend[];
  readonly ownership: Ownership;
  readonly statistics: PhaseStatistics;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly recorder: Recorder;
  readonly random: () => number;
  open(data: Uint8Array): Promise<Opened>;
  stepsOf(task: Task): number;
  nonce(): string;
  identify(executor: Executor): Identified;
  launch(info: AssignmentInfo): Readonly<Record<string, string>>;
  /** Takes an entry for the events stream. */
  append(entry: JournalEntry): void;
  /** When the facade began to listen, monotonic; null while it does not. */
  facadeSince(): number | null;
  /** Throws when this process may not act any more. */
  guard(): void;
  /** Why no executor could reach the facade now; null when they can. */
  cutOff?(): WaitingReason | null;
  /** Every backend is recovered: what is not known now does not exist. */
  onRecovered(): void;
  /** A newer epoch was seen: another controller leads. */
  onFenced(detail: string): void;
}

/** Settings of the engine; times in milliseconds. */
export interface EngineOptions {
  readonly instance: Instance;
  readonly capacity: Readonly<Record<BackendName, number>>;
  readonly zombieTimeoutMs: number;
  readonly heartbeatMaxRps: number;
  readonly claimTimeoutMs: number;
  /** A task that waits longer than this is failed at Gitea; 2 h by default. */
  readonly maxWaitMs?: number;
  readonly delays?: Delays;
  readonly lifecycle?: LifecycleTimes;
}

/** The acting half of the program: everything that only the leader does. */
export interface Engine extends AsyncDisposable {
  readonly ledger: Ledger;
  readonly pools: Readonly<Record<BackendName, Pool>>;
  /** For the facade. */
  readonly events: ExecutorEvents;
  /** Epoch of this process; 0 before it has taken over. */
  epoch(): number;
  flags(backend: BackendName): ControlFlags;
  /** Flags that are stored now: from here on they hold. */
  setFlags(backend: BackendName, flags: ControlFlags): void;
  /** {@link EngineDeps.cutOff} answers otherwise than before: those that wait go on, or say why not. */
  reachChanged(): void;
  /** Calls back after each {@link setFlags}, until the signal aborts. */
  watchFlags(listener: (backend: BackendName) => void, signal: AbortSignal): void;
  strangers(backend: BackendName): readonly Stranger[];
  /** Deletes exactly this executor that belongs to no assignment; throws `BackendError`. */
  removeStranger(
    backend: BackendName,
    executor: Pick<Executor, "name" | "uid">,
    signal: AbortSignal,
  ): Promise<"gone" | "leaving">;
  /** True when every backend is recovered. */
  ready(): boolean;
  /** True when this one is: what is not in the ledger of it does not exist. */
  recovered(backend: BackendName): boolean;
  /** What operators may do to end an assignment. */
  readonly release: Release;
  /** The scheduler has stored a task. */
  stored(info: AssignmentInfo, sequence: number, storedAt: number): void;
  /** Tries a parked assignment now; see `retry.ts`. */
  retry(id: AssignmentId, signal: AbortSignal): Promise<RetryOutcome>;
  /** Reads the flags and raises the epoch; retried until it holds. Nothing acts before this. */
  takeOver(signal: AbortSignal): Promise<void>;
  /** Recovers, then consumes, until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Ends every executor (clean stop of the embedded profile); call it after {@link run} has ended. */
  endExecutors(signal: AbortSignal): Promise<void>;
}
