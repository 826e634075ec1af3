import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Backend, Executor } from "./backend.ts";
import { createEntry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import type { AssignmentInfo } from "./model/assignment_info.ts";
import type { AssignmentId, BackendName } from "./model/ids.ts";
import type { TaskRecord } from "./model/record.ts";
import { unstartedSteps } from "./model/steps.ts";
import type { Offers, Shown } from "./offers.ts";
import { firstRecord } from "./first_record.ts";
import type { Opened } from "./processor.ts";
import type { PendingMessage } from "./queue.ts";
import type { Recorder } from "./recorder.ts";
import type { Versioned } from "./records.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Strangers } from "./strangers.ts";

/** An executor that was found at start without the record that would prove it ours. */
export interface Unproven {
  /** As its metadata says. */
  readonly info: AssignmentInfo;
  readonly executor: Executor;
  /** Its task, while that is still stored. */
  readonly message: PendingMessage | null;
  readonly opened: Opened | null;
  /** Puts it into the ledger by the record that its proof has made; null = the executor has gone since. */
  adopt(record: Versioned<TaskRecord>, executor: Executor | null): void;
}

/**
 * Takes over executors whose records are lost. A signature proves nothing without the record's nonce;
 * what does is a call of the gate itself, with the capability of the assignment and an SVID of exactly
 * the SPIFFE ID that the metadata derives (docs/adr/0030). Until it comes the executor is unknown,
 * keeps its slot, and nothing is made for its assignment.
 */
export interface Proofs {
  /** Waits for what the gate shows. */
  expect(unproven: Unproven): void;
  /** What a gate has shown; one that is not expected is ignored. Never throws. */
  shown(id: AssignmentId, gate: string, shown: Shown): void;
}

/** Why one that waits for its proof is unknown. */
export const UNPROVEN =
  "its record is lost: it is taken over as soon as its gate says whether it holds the job";
const OLD_GATE =
  "its record is lost, and its gate, of an earlier release, cannot say where its job's log begins";

/** Makes {@link Proofs}. */
export function createProofs(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tasks: TaskGroup;
  readonly ledger: Ledger;
  readonly offers: Offers;
  readonly writer: RecordWriter;
  readonly recorder: Pick<Recorder, "recovered">;
  backend(name: BackendName): Backend;
  strangers(name: BackendName): Strangers;
  /** An operator has given its slot to others. */
  isForgotten(backend: BackendName, executor: Executor): boolean;
  stepsOf(task: Task): number;
  nonce(): string;
  /** Throws when this process may not act any more. */
  guard(): void;
}): Proofs {
  const { clock, ledger, offers } = deps;
  const logger = deps.logger.child({ component: "lifecycle" });
  const expected = new Map<AssignmentId, Unproven>();
  const proving = new Set<AssignmentId>();

  /** From now on the facade refuses it. */
  const drop = ({ info }: Unproven) => {
    expected.delete(info.id);
    offers.remove(info.id);
  };
  /** Somebody has decided about its job without it. */
  const isDecided = ({ info }: Unproven) => {
    const entry = ledger.get(info.id);
    return entry !== undefined && !(entry.unproven && entry.state.kind === "stored");
  };

  const recordOf = (unproven: Unproven, gate: string, shown: Shown) => {
    const { info, executor, message, opened } = unproven;
    const readable = opened?.kind === "readable" ? opened : null;
    const storedAt = message?.storedAt ?? executor.createdAt;
    return {
      ...firstRecord(readable?.info ?? info, storedAt, deps.nonce()),
      uid: executor.uid,
      steps: readable === null ? [] : unstartedSteps(deps.stepsOf(readable.task)),
      ...shown.kind !== "holds" ? {} : {
        claimedBy: { executor: executor.name, gate, at: clock.now() },
        logOffset: shown.logOffset,
      },
    };
  };

  const prove = async (
    unproven: Unproven,
    { gate, shown }: { readonly gate: string; readonly shown: Shown },
    signal: AbortSignal,
  ) => {
    const { info, executor } = unproven;
    const { name, uid } = executor;
    const found = await deps.backend(info.backend).find(name, { signal });
    deps.guard();
    // Not in the ledger: nobody may act on it before its record is written.
    const draft = createEntry(info, { kind: "stored" }, executor.createdAt, clock.now());
    await deps.writer.ensure(draft, recordOf(unproven, gate, shown), signal);
    const { record } = draft;
    if (record === null || record.value.uid !== uid || isDecided(unproven)) return drop(unproven);
    expected.delete(info.id);
    unproven.adopt(record, found?.uid === uid ? found : null);
    deps.strangers(info.backend).forget(name);
    deps.recorder.recovered(info.backend, 1);
    logger.warn("executor recovered without its record", {
      assignment: info.id,
      executor: name,
      proof: "heartbeat",
      claimed: record.value.claimedBy !== null,
    });
  };

  return {
    expect(unproven) {
      expected.set(unproven.info.id, unproven);
      offers.expectProof(unproven.info);
    },
    shown(id, gate, shown) {
      const unproven = expected.get(id);
      if (unproven === undefined || proving.has(id)) return;
      const { info: { backend }, executor } = unproven;
      if (deps.isForgotten(backend, executor) || isDecided(unproven)) return drop(unproven);
      if (shown.kind === "holds_somewhere") {
        deps.strangers(backend).show({ executor, ownership: "unknown", why: OLD_GATE });
        return drop(unproven);
      }
      proving.add(id);
      deps.tasks.spawn(`prove ${id}`, async (signal) => {
        try {
          await prove(unproven, { gate, shown }, signal);
        } catch (error) {
          // Its next call tries again.
          if (!signal.aborted) logger.error("backend lifecycle error", { action: "prove", error });
        } finally {
          proving.delete(id);
        }
      });
    },
  };
}
