/** Exit codes, documented in the help: a code never gets another meaning. */
export const EXIT = {
  done: 0,
  /** The dashboard cannot be reached, or failed. */
  failed: 1,
  usage: 2,
  /** It does not fit to how things stand, or has changed since. */
  refused: 3,
  notFound: 4,
  /** Not signed in, or not allowed. */
  forbidden: 5,
  /** With --wait: the operation failed, or did not end in time. */
  unfinished: 6,
} as const;

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
const PAGING: readonly OptionName[] = ["limit", "cursor"];
const WAITING: readonly OptionName[] = ["wait", "timeout"];
const ACTION: readonly OptionName[] = ["note", "key", "if-match", ...WAITING];

/** One command of the tool. */
export interface CommandUsage {
  readonly name: string;
  /** Names of its arguments, as the help shows them. */
  readonly args: readonly string[];
  /** Those that it takes beside {@link COMMON_OPTIONS}; it refuses every other. */
  readonly options: readonly OptionName[];
  readonly summary: string;
}

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandUsage[] = [
  { name: "status", args: [], options: [], summary: "leader, servers and backends at a glance" },
  {
    name: "backends",
    args: [],
    options: [],
    summary: "backends with their slots, flags and overrides",
  },
  {
    name: "assignments",
    args: [],
    options: ["backend", "state", "repository", ...PAGING],
    summary: "jobs; --backend --state --repository --limit",
  },
  { name: "assignment", args: ["ID"], options: [], summary: "one job with its events" },
  {
    name: "executors",
    args: [],
    options: ["backend", ...PAGING],
    summary: "executors, unknown and foreign ones too; --backend",
  },
  {
    name: "cordon",
    args: ["BACKEND"],
    options: ACTION,
    summary: "take nothing new; stored jobs wait",
  },
  {
    name: "drain",
    args: ["BACKEND"],
    options: ["deadline", "hold", ...ACTION],
    summary: "take nothing new, wait until nothing runs",
  },
  { name: "resume", args: ["BACKEND"], options: ACTION, summary: "lift cordon and drain" },
  {
    name: "capacity",
    args: ["BACKEND", "SLOTS|default"],
    options: ACTION,
    summary: "slots in place of the configured",
  },
  {
    name: "label",
    args: ["BACKEND", "vm|vm-dev|default"],
    options: ACTION,
    summary: "canary label or its own",
  },
  { name: "cancel", args: ["ID"], options: ACTION, summary: "cancel a job" },
  { name: "retry", args: ["ID"], options: ACTION, summary: "try a parked job now" },
  {
    name: "release",
    args: ["ID"],
    options: ["tier", "confirm", "yes", ...ACTION],
    summary: "give a job up; says first what that does",
  },
  {
    name: "release-executor",
    args: ["NAME"],
    options: ["tier", "confirm", "yes", ...ACTION],
    summary: "give up one that nobody can account for",
  },
  { name: "undo", args: ["OPERATION"], options: ACTION, summary: "put back what a drain has set" },
  { name: "step-down", args: [], options: ACTION, summary: "let another replica lead" },
  {
    name: "operations",
    args: [],
    options: ["target", "state", ...PAGING],
    summary: "what was begun; --target --state",
  },
  { name: "operation", args: ["OPERATION"], options: WAITING, summary: "one of them" },
  {
    name: "audit",
    args: [],
    options: ["actor", "action", "target", "result", ...PAGING],
    summary: "who did what; --actor --action --target --result",
  },
  {
    name: "history",
    args: [],
    options: ["backend", ...PAGING],
    summary: "what happened to jobs; --backend",
  },
  { name: "completion", args: ["bash|zsh|fish"], options: [], summary: "completion for a shell" },
];

/** The help. */
export function usageText(): string {
  const column = (left: string, right: string) => `  ${left.padEnd(34)}${right}`;
  return [
    "Operates a gitea-dynamic-runner through its JSON API.",
    "",
    "  deno task ctl COMMAND [options]",
    "",
    ...COMMANDS.map(({ name, args, summary }) => column([name, ...args].join(" "), summary)),
    "",
    "Options:",
    ...Object.entries(TEXT_OPTIONS).map(([name, text]) => column(`--${name} VALUE`, text)),
    ...Object.entries(FLAG_OPTIONS).map(([name, text]) => column(`--${name}`, text)),
    "",
    "An ID may be the task's number alone: 812 is gitea-task-812.",
    "ADMIN_URL says where the dashboard is, ADMIN_TOKEN or ADMIN_TOKEN_FILE holds the bearer token.",
    "",
    "Exit codes: 0 done or begun, 1 the dashboard failed or cannot be reached, 2 wrong usage, 3 refused",
    "(it does not fit, or has changed since), 4 not found, 5 not signed in or not allowed, 6 with --wait:",
    "the operation failed or did not end in time.",
    "",
  ].join("\n");
}
