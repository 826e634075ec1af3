import { EXIT } from "../executor/exit_codes.ts";

/** What the gate's exit codes mean, for people; the same words for every backend. */
const TEXTS: Readonly<Record<number, string>> = {
  [EXIT.delivered]: "a final state was delivered",
  [EXIT.launch]: "the launch environment is wrong",
  [EXIT.identity]: "no SVID for the job's identity came in time",
  [EXIT.facadeSilent]: "the facade did not answer in time",
  [EXIT.claimRefused]: "the facade refused the claim",
  [EXIT.runnerStart]: "the runner could not be started",
  [EXIT.noTask]: "the runner ended without having been handed a task",
  [EXIT.noFinalState]: "the runner ended without a final state",
  [EXIT.undelivered]: "the final state could not be delivered in time",
  [EXIT.reportsRefused]: "the facade refused the reports of this task",
  [EXIT.stopped]: "stopped before a task was handed over",
  [EXIT.internal]: "a fault of the gate itself",
  126: "the program cannot be executed",
  127: "the program was not found",
};

const SIGNALS: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  11: "SIGSEGV",
  13: "SIGPIPE",
  15: "SIGTERM",
};

/** `exit code 10: no SVID for ...`, `killed by SIGKILL` (shells report 128 + signal), or the bare code. */
export function exitText(code: number): string {
  if (code > 128) return `killed by ${SIGNALS[code - 128] ?? `signal ${code - 128}`}`;
  const text = TEXTS[code];
  return text === undefined ? `exit code ${code}` : `exit code ${code}: ${text}`;
}
