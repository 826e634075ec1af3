import {
  Result,
  type TaskState,
  TaskStateSchema,
  UpdateTaskRequestSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { clone, create, toBinary } from "../proto/runtime.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { createOutputQueue } from "./output_queue.ts";
import type { ReportSender, Sent } from "./report_sender.ts";

/**
 * The states of one task on their way to the facade, with its outputs: of those that are not final
 * the oldest and the newest, then the final one. A state takes the new outputs along; large ones need
 * several calls, and until the last of them the state is sent as not final.
 */
export interface StateQueue {
  /** States that the facade has not accepted. */
  readonly length: number;
  /** The final one, once it is there; its result may still turn into a failure when an output is lost. */
  readonly final: TaskState | undefined;
  /** True once Gitea has ended the task, whatever its runner says. */
  readonly cancelled: boolean;
  /** Outputs wait that may be refused as too large: they go up while the log can still tell. */
  readonly isBulky: boolean;
  /** Names of all outputs so far. */
  outputNames(): string[];
  /** Adds outputs; of each name the first value stays. */
  addOutputs(outputs: Readonly<Record<string, string>>): void;
  /** Adds a state that is not final; rows up to `after` go before it. */
  add(state: TaskState, after: bigint): void;
  /** Adds the final state. */
  end(state: TaskState): void;
  /** The facade will never take the task's reports. */
  cancel(): void;
  /** True when a state that is not final can go up, the facade having that many rows. */
  due(receivedRows: bigint): boolean;
  /** Sends that one. Rejects with the signal's reason, as all that sends. */
  sendNext(signal: AbortSignal): Promise<Sent<void>>;
  /** Sends outputs with the final state, as not final yet. */
  sendOutputs(signal: AbortSignal): Promise<Sent<void>>;
  /** Sends the final state; `finished` when it and all outputs were accepted. */
  sendFinal(signal: AbortSignal): Promise<Sent<"more" | "finished">>;
}

/** What the queue works with. */
export interface StateQueueDeps {
  readonly sender: Pick<ReportSender, "updateTask">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Adds a row behind the runner's last one; called only after {@link StateQueue.end}. */
  readonly addRow: (content: string) => void;
}

interface Waiting {
  readonly state: TaskState;
  /** Rows that go before it. */
  readonly after: bigint;
}

const BULKY_BYTES = 512 * 1024;
/** A state that says nothing new is a heartbeat: one in this time is enough. */
const HEARTBEAT_MS = 3000;

/** Makes an empty {@link StateQueue}. */
export function createStateQueue(deps: StateQueueDeps): StateQueue {
  const outputs = createOutputQueue();
  const lost: { readonly name: string; readonly bytes: number }[] = [];
  let states: readonly Waiting[] = [];
  let final: TaskState | undefined;
  let cancelled = false;
  const isNew = newsOf(deps.clock);

  /** Says what was lost in the job's log, and that it has failed. */
  const tellLosses = () => {
    if (final === undefined) return;
    for (const { name, bytes } of lost.splice(0)) {
      const quoted = JSON.stringify(name.slice(0, 100));
      deps.addRow(
        `Error: the output ${quoted} of this job is lost: Gitea, or a proxy in front of it, does ` +
          `not take its ${bytes} bytes. The job is recorded as failed.`,
      );
      if (final.result === Result.SUCCESS) final = { ...final, result: Result.FAILURE };
    }
  };

  /** Sends a state with the outputs that are new. `again`: with fewer of them. */
  const send = async (
    state: TaskState,
    signal: AbortSignal,
  ): Promise<Sent<"all" | "part" | "again">> => {
    const { outputs: some, isAll } = outputs.next();
    const sentState = isAll ? clone(TaskStateSchema, state) : unfinished(state);
    const request = create(UpdateTaskRequestSchema, { state: sentState });
    Object.assign(request.outputs, some);
    const sent = await deps.sender.updateTask(request, { signal });
    if (sent.kind === "too_large" && Object.keys(some).length > 0) {
      const output = outputs.tooLarge(some);
      if (output !== undefined) {
        deps.logger.warn("an output is too large for Gitea", { ...output, why: sent.why });
        lost.push(output);
        tellLosses();
      }
      return { kind: "accepted", value: "again" };
    }
    if (sent.kind !== "accepted") return sent;
    outputs.accepted(some);
    const result = sent.value.state?.result ?? Result.UNSPECIFIED;
    if (result !== Result.UNSPECIFIED && state.result === Result.UNSPECIFIED) cancelled = true;
    return { kind: "accepted", value: isAll ? "all" : "part" };
  };

  return {
    get length() {
      return states.length + (final === undefined ? 0 : 1);
    },
    get final() {
      return final;
    },
    get cancelled() {
      return cancelled;
    },
    get isBulky() {
      return outputs.unsentBytes > BULKY_BYTES;
    },
    outputNames: () => outputs.keys(),
    addOutputs: (some) => outputs.add(some),
    add(state, after) {
      if (isNew(state, outputs.size)) states = [...states.slice(0, 1), { state, after }];
    },
    end(state) {
      final = state;
      tellLosses();
    },
    cancel() {
      cancelled = true;
    },
    due(receivedRows) {
      const [first] = states;
      return first !== undefined && first.after <= receivedRows;
    },
    async sendNext(signal) {
      const [first] = states;
      if (first === undefined) return DONE;
      const sent = await send(first.state, signal);
      if (sent.kind !== "accepted") return sent;
      if (sent.value !== "again") states = states.filter((waiting) => waiting !== first);
      return DONE;
    },
    async sendOutputs(signal) {
      if (final === undefined) return DONE;
      const sent = await send(unfinished(final), signal);
      return sent.kind === "accepted" ? DONE : sent;
    },
    async sendFinal(signal) {
      if (final === undefined) return { kind: "accepted", value: "more" };
      const sent = await send(final, signal);
      if (sent.kind !== "accepted") return sent;
      return { kind: "accepted", value: sent.value === "all" ? "finished" : "more" };
    },
  };
}

const DONE = { kind: "accepted", value: undefined } as const;

/** Tells states that say something new, or come after a while, from those that repeat the last one. */
function newsOf(clock: Clock): (state: TaskState, outputs: number) => boolean {
  let newest = { bytes: "", outputs: 0, at: 0 };
  return (state, outputs) => {
    const bytes = toBinary(TaskStateSchema, state).toHex();
    const now = clock.monotonic();
    const repeated = bytes === newest.bytes && outputs === newest.outputs &&
      now - newest.at < HEARTBEAT_MS;
    if (!repeated) newest = { bytes, outputs, at: now };
    return !repeated;
  };
}

/** A copy that does not end the job, whatever it was. */
function unfinished(state: TaskState): TaskState {
  const copy = clone(TaskStateSchema, state);
  copy.result = Result.UNSPECIFIED;
  delete copy.stoppedAt;
  return copy;
}
