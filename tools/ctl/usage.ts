/** Exit codes, with their meanings in the help: a code never gets another one. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  refused: 3,
  notFound: 4,
  forbidden: 5,
  unfinished: 6,
} as const;

const EXIT_MEANINGS: Readonly<Record<(typeof EXIT)[keyof typeof EXIT], string>> = {
  [EXIT.done]: "done or begun",
  [EXIT.failed]: "the dashboard failed or cannot be reached",
  [EXIT.usage]: "wrong usage",
  [EXIT.refused]: "refused (it does not fit, or has changed since)",
  [EXIT.notFound]: "not found",
  [EXIT.forbidden]: "not signed in or not allowed",
  [EXIT.unfinished]: "with --wait: the operation failed or did not end in time",
};

/** A wrong command line; nothing was done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Options that take a value, by name. */
export const TEXT_OPTIONS = {
  url: "base URL of the dashboard (ADMIN_URL; default http://127.0.0.1:8080)",
  note: "why; it goes into the audit",
  key: "Idempotency-Key; a random one by default",
  "if-match": "tag of the target: refused when it has changed since",
  deadline: "of a drain: 90s, 30m, 2h, or a time such as 2027-01-15T08:00:00Z",
  tier: "of a release: graceful, forced or forget; of an executor: forced or forget",
  confirm: "of a release by forget: the assignment's id, or the executor's name, again",
  timeout: "how long --wait waits: 90s, 30m, 2h (default 1h)",
  backend: "pod or vm",
  state: "state of an assignment or operation",
  repository: "owner/name",
  target: "a backend, an assignment, or leader",
  actor: "who did it",
  action: "what was done",
  result: "done, refused or failed",
  limit: "how many at most (default 50)",
  cursor: "nextCursor of the page before",
} as const;

/** Options without a value, by name. */
export const FLAG_OPTIONS = {
  json: "print the API's answer as it is",
  hold: "of a drain: keep stored jobs waiting",
  wait: "wait until the operation has ended",
  yes: "of a release: do not ask",
  help: "this text",
} as const;

/** Name of an option. */
export type OptionName = keyof typeof TEXT_OPTIONS | keyof typeof FLAG_OPTIONS;

/** Options that every command takes. */
export const COMMON_OPTIONS: readonly OptionName[] = ["url", "json", "help"];

/** How a command is written. */
export interface CommandUsage {
  readonly name: string;
  /** Names of its arguments, as the help shows them; each must be given. */
  readonly args: readonly string[];
  /** Those that it takes beside {@link COMMON_OPTIONS}; it refuses every other. */
  readonly options: readonly OptionName[];
  readonly summary: string;
}

/** The help on these commands. */
export function usageText(commands: readonly CommandUsage[]): string {
  const codes = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => `${code} ${meaning}`);
  const column = (left: string, right: string) => `  ${left.padEnd(34)}${right}`;
  return [
    "Operates a gitea-dynamic-runner through its JSON API.",
    "",
    "  deno task ctl COMMAND [options]",
    "",
    ...commands.map(({ name, args, summary }) => column([name, ...args].join(" "), summary)),
    "",
    "Options:",
    ...Object.entries(TEXT_OPTIONS).map(([name, text]) => column(`--${name} VALUE`, text)),
    ...Object.entries(FLAG_OPTIONS).map(([name, text]) => column(`--${name}`, text)),
    "",
    "An ID may be the task's number alone: 812 is gitea-task-812.",
    "ADMIN_URL says where the dashboard is, ADMIN_TOKEN or ADMIN_TOKEN_FILE holds the bearer token.",
    "",
    wrap(`Exit codes: ${codes.join(", ")}.`),
    "",
  ].join("\n");
}

/** The words in lines that a terminal shows whole. */
function wrap(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= MAX_LINE) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join("\n");
}

const MAX_LINE = 101;
