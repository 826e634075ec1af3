import { abortable } from "../lib/abortable.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { Ledger } from "./ledger.ts";
import type { ReportedEnd, TaskRecord } from "./model/record.ts";
import type { ExecutorEvents } from "./offers.ts";
import type { RecordWriter } from "./record_writer.ts";
import type { Settlement } from "./settle.ts";

/** While the record cannot be written for so long, the end goes to Gitea without it. */
const KEEP_MS = 2_000;

/**
 * Keeps in the record what an executor has reported as the end of its job, in one write that takes
 * the place of the one for its last steps. See {@link ExecutorEvents.endReported}.
 */
export function createEndKeeper(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ledger: Pick<Ledger, "get">;
  readonly writer: Pick<RecordWriter, "change">;
  guard(): void;
}): NonNullable<ExecutorEvents["endReported"]> {
  const { clock, ledger, writer, guard } = deps;
  const logger = deps.logger.child({ component: "worker" });
  return async (id, end, signal) => {
    const entry = ledger.get(id);
    const kind = entry?.state.kind;
    if (entry === undefined || (kind !== "claimed" && kind !== "running")) return;
    guard();
    const { steps } = end;
    const reported: ReportedEnd = { ...end, at: clock.now() };
    using patience = clock.timeout(KEEP_MS);
    const stop = AbortSignal.any([signal, patience.signal]);
    try {
      const write = (r: TaskRecord) => r.terminal !== null ? r : { ...r, steps, reported };
      await abortable(writer.change(entry, write, stop), stop);
    } catch (error) {
      signal.throwIfAborted();
      guard();
      logger.warn("the reported end is not recorded", { assignment: id, error });
    }
  };
}

/** How a job whose executor is lost is told to Gitea: as it was reported, else as `lost` says. */
export function settlementOfLost(
  record: Pick<TaskRecord, "reported"> | undefined,
  lost: Omit<Settlement, "taskId">,
): Omit<Settlement, "taskId"> {
  const reported = record?.reported;
  if (reported === undefined) return lost;
  const { result, steps } = reported;
  // It is seen only where the log was not sealed yet.
  const text = reported.row ??
    `gitea-dynamic-runner: the executor reported ${result} and was lost at that moment; ` +
      "the last row of its log may be missing";
  return { result, steps, text };
}
