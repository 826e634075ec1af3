import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { retryForever } from "../../lib/retry.ts";
import type { Operation } from "./operation.ts";
import type { OperationChange, Operations } from "./operations.ts";
import { QueueError } from "../queue.ts";

/** What {@link createOperationSteps} needs. */
export interface OperationStepsDeps {
  readonly operations: Operations;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  /** Throws when this process may not act any more. */
  guard(): void;
  /** The effect holds, or never will: for the audit. */
  tell(operation: Operation): void;
}

/** What every operation goes through. All reject with the signal's reason when it aborts. */
export interface OperationSteps {
  /**
   * Tries an effect until it holds; rejects with an error that no further try can mend. `attempt` counts
   * from 1. While it is not sure who leads nothing is tried, and nothing has failed for good.
   */
  hold<T>(
    operation: Operation,
    signal: AbortSignal,
    effect: (attempt: number) => Promise<T>,
  ): Promise<T>;
  /** Writes down that it has ended, `done` unless `change` says otherwise. */
  end(operation: Operation, change: OperationChange, signal: AbortSignal): Promise<Operation>;
  /** Writes down why it has failed, and tells the audit. */
  fail(operation: Operation, error: string, signal: AbortSignal): Promise<void>;
  /** False while `guard` throws: another leads, or it is only not sure for a moment who does. */
  mayAct(): boolean;
}

/** Makes {@link OperationSteps}. */
export function createOperationSteps(deps: OperationStepsDeps): OperationSteps {
  const { operations, clock } = deps;

  const mayAct = () => {
    try {
      deps.guard();
      return true;
    } catch {
      return false;
    }
  };

  const hold: OperationSteps["hold"] = <T>(
    operation: Operation,
    signal: AbortSignal,
    effect: (attempt: number) => Promise<T>,
  ) => {
    let attempts = 0;
    return retryForever(() => {
      deps.guard();
      return effect(++attempts);
    }, {
      clock,
      random: deps.random,
      signal,
      backoff: { firstMs: 250, maxMs: 5_000 },
      // Who is not sure to lead may be sure in a moment; where another leads the signal aborts.
      final: (error) => mayAct() && !(error instanceof QueueError && mayHoldLater(error)),
      onError: (error) =>
        deps.logger.warn("operation is tried again", { operation: operation.id, error }),
    });
  };

  const end = async (operation: Operation, change: OperationChange, signal: AbortSignal) =>
    await hold(operation, signal, () =>
      operations.change(operation.id, {
        state: "done",
        progress: { done: operation.progress.total, total: operation.progress.total },
        error: null,
        ...change,
        endedAt: clock.now(),
      }, signal));

  const fail = async (operation: Operation, error: string, signal: AbortSignal) => {
    const { progress } = operations.get(operation.id) ?? operation;
    deps.tell(await end(operation, { state: "failed", error, progress }, signal));
  };

  return { hold, end, fail, mayAct };
}

/** A lost write is tried again over what stands there then. */
function mayHoldLater({ code, retryable }: QueueError): boolean {
  return retryable || code === "conflict";
}
