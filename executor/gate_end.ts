import { EXIT, type ExitCode, type Outcome } from "./exit_codes.ts";
import { Result } from "../proto/gen/runner/v1/messages_pb.ts";
import { errorText } from "../lib/error_text.ts";
import type { GivenUp, OutboxEnd } from "./outbox.ts";
import type { RunnerEnd } from "./runner.ts";

/** Ends the gate with an outcome, whatever else is under way. */
export class GateEnd extends Error {
  override readonly name = "GateEnd";
  /** What the gate exits with. */
  readonly outcome: Outcome;

  /** `detail` is text for people. */
  constructor(code: ExitCode, detail: string) {
    super(detail);
    this.outcome = { code, detail };
  }
}

/** What is known when the runner has gone and the delivery is over. */
export interface EndFacts {
  readonly runner: RunnerEnd;
  readonly delivery: OutboxEnd | GivenUp;
  readonly handedOver: boolean;
  readonly finalStored: boolean;
  /** Why the executor was asked to end; undefined if it was not. */
  readonly stopped: string | undefined;
}

/** The gate's outcome. Exit 0 only when a final state was accepted. */
export function outcomeOf(facts: EndFacts): Outcome {
  const { delivery, stopped } = facts;
  const runner = `the runner ended ${endText(facts.runner)}`;
  const why = stopped === undefined ? runner : `${runner} (${stopped})`;
  switch (delivery.kind) {
    case "delivered":
      return { code: EXIT.delivered, detail: `delivered ${Result[delivery.result]}` };
    case "refused":
      return { code: EXIT.reportsRefused, detail: `reports were refused: ${delivery.why}` };
    case "given_up": {
      const text = errorText(delivery.error);
      return facts.finalStored
        ? { code: EXIT.undelivered, detail: `the final state was not delivered: ${text}` }
        : { code: EXIT.noFinalState, detail: `${why} without a final state; ${text}` };
    }
    case "drained":
      if (facts.handedOver) {
        return { code: EXIT.noFinalState, detail: `${why} without a final state` };
      }
      return stopped === undefined
        ? { code: EXIT.noTask, detail: `${runner} before it had a task` }
        : { code: EXIT.stopped, detail: `stopped before it had a task: ${stopped}` };
    default:
      return delivery satisfies never;
  }
}

function endText(end: RunnerEnd): string {
  if (end.signal !== null) {
    return end.signal === "SIGKILL" ? "by SIGKILL (out of memory?)" : `by ${end.signal}`;
  }
  return `with code ${end.code}${end.code === 2 ? " (a panic)" : ""}`;
}
