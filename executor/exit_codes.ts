/** Exit codes of the identity gate; `README.md` beside this file says what an operator does about each. */
export const EXIT = {
  /** A final state of the job was accepted. */
  delivered: 0,
  /** The launch environment is wrong; every fault was printed. */
  launch: 2,
  /** No SVID with exactly the wanted SPIFFE ID within the time limit. */
  identity: 10,
  /** The facade gave no answer within the time limit. */
  facadeSilent: 11,
  /** The facade refused this executor or its claim for good. */
  claimRefused: 12,
  /** The runner could not be started. */
  runnerStart: 13,
  /** The runner ended without having been handed a task. */
  noTask: 14,
  /** The runner ended without ever sending a final state. */
  noFinalState: 15,
  /** The final state could not be delivered before the time limit or the grace period was over. */
  undelivered: 16,
  /** The facade refused the reports of this task for good. */
  reportsRefused: 17,
  /** Asked to stop before a task was handed over. */
  stopped: 18,
  /** A fault of the gate itself. */
  internal: 70,
} as const;

/** One of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** How the gate ends: what it exits with, and what it tells the facade. */
export interface Outcome {
  readonly code: ExitCode;
  /** Plain English for people; never a secret. */
  readonly detail: string;
}
