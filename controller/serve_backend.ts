import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Task } from "../proto/gen/runner/v1/messages_pb.ts";
import type { Admission } from "./admission.ts";
import type { Executor } from "./backend.ts";
import type { Deed } from "./effects.ts";
import type { Entry } from "./entry.ts";
import type { Ledger } from "./ledger.ts";
import { createLifecycle, type LifecycleTimes } from "./lifecycle.ts";
import {
  type AssignmentId,
  assignmentIdOf,
  type ExecutorName,
  type Instance,
  parseTaskId,
} from "./model/ids.ts";
import type { Offers } from "./offers.ts";
import type { Pool } from "./pool.ts";
import { createProcessor, type Opened } from "./processor.ts";
import type { Proofs } from "./proofs.ts";
import type { AssignmentQueue } from "./queue.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Recorder } from "./recorder.ts";
import type { Records } from "./records.ts";
import { recoverBackend } from "./recovery.ts";
import type { Identified, Strangers } from "./strangers.ts";
import type { Ownership, Worker } from "./worker.ts";

/** What {@link serveBackend} needs. */
export interface ServeDeps {
  readonly worker: Worker;
  readonly strangers: Strangers;
  readonly pool: Pool;
  readonly admission: Admission;
  readonly instance: Instance;
  readonly times: LifecycleTimes;
  readonly maxWaitMs: number;
  readonly parkMs: number;
  readonly queue: AssignmentQueue;
  readonly records: Records;
  readonly writer: RecordWriter;
  readonly offers: Offers;
  readonly ledger: Ledger;
  readonly ownership: Ownership;
  readonly proofs: Proofs;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly logger: Logger;
  open(data: Uint8Array): Promise<Opened>;
  stepsOf(task: Task): number;
  nonce(): string;
  identify(executor: Executor): Identified;
  facadeSince(): number | null;
  run(entry: Entry, effect: Deed): void;
  inquire(entry: Entry): void;
  rebind(entry: Entry): void;
  /** Repeats an action until it holds. */
  forever<T>(what: string, operation: () => Promise<T>): Promise<T>;
  /** The backend is recovered; nothing is admitted before. */
  recovered(): void;
}

/**
 * One backend from its recovery on: reads what an earlier process left, takes over its consumer, then
 * consumes and keeps ledger and backend the same, until aborted. Trouble with it is nobody else's.
 */
export async function serveBackend(deps: ServeDeps, signal: AbortSignal): Promise<void> {
  const { worker, admission, forever, logger } = deps;
  const { name } = worker.backend;
  const found = await forever(`recover ${name}`, async () =>
    await recoverBackend({
      ...deps,
      records: await deps.records.list({ signal }),
      waiting: () => admission.waiting(name),
    }, signal));
  logger.info("backend recovered", { component: "lifecycle", backend: name, ...found });
  await forever(`reset consumer ${name}`, () => deps.queue.resetConsumer(name, { signal }));
  deps.recovered();
  const processor = createProcessor({
    ...deps,
    backend: name,
    closed: () => admission.closed(name),
    waiting: () => admission.waiting(name),
  });
  const lifecycle = createLifecycle({
    ...deps,
    assignmentOf: (executor) => assignmentOf(deps.instance, executor),
  });
  await Promise.all([
    forever(`consume ${name}`, () => processor.run(signal)),
    lifecycle.run(signal),
  ]);
}

/** The inverse of `executorName`. */
function assignmentOf(instance: Instance, name: ExecutorName): AssignmentId | undefined {
  const prefix = `ci-${instance}-`;
  const task = name.startsWith(prefix) ? parseTaskId(name.slice(prefix.length)) : undefined;
  return task === undefined ? undefined : assignmentIdOf(task);
}
