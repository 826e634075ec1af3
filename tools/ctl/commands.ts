import type { BackendView, Page } from "../../controller/views/views.ts";
import {
  argument,
  backendOf,
  checkLine,
  deadlineOf,
  idOf,
  type Line,
  slotsOf,
} from "./arguments.ts";
import { act, ACTION, type Command, type CommandDeps, list, PAGING, read } from "./command.ts";
import { completionOf, SHELLS } from "./completion.ts";
import { follow } from "./follow.ts";
import { release, releaseExecutor } from "./release.ts";
import {
  assignmentsText,
  assignmentText,
  auditText,
  backendsText,
  executorsText,
  historyText,
  operationsText,
  statusText,
} from "./render.ts";
import { EXIT, UsageError } from "./usage.ts";

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  {
    name: "status",
    args: [],
    options: [],
    summary: "leader, servers and backends at a glance",
    run: (call) => read(call, "/status", statusText),
  },
  {
    name: "backends",
    args: [],
    options: [],
    summary: "backends with their slots, flags and overrides",
    run: (call) =>
      read<Page<BackendView>>(call, "/backends", ({ items }, now) => backendsText(items, now)),
  },
  {
    name: "assignments",
    args: [],
    options: ["backend", "state", "repository", ...PAGING],
    summary: "jobs; --backend --state --repository --limit",
    run: (call) =>
      list(call, "/assignments", {
        filters: ["backend", "state", "repository"],
        show: assignmentsText,
      }),
  },
  {
    name: "assignment",
    args: ["ID"],
    options: [],
    summary: "one job with its events",
    run: (call) => read(call, `/assignments/${idOf(call.line)}`, assignmentText),
  },
  {
    name: "executors",
    args: [],
    options: ["backend", ...PAGING],
    summary: "executors, unknown and foreign ones too; --backend",
    run: (call) => list(call, "/executors", { filters: ["backend"], show: executorsText }),
  },
  {
    name: "cordon",
    args: ["BACKEND"],
    options: ACTION,
    summary: "take nothing new; stored jobs wait",
    run: (call) => act(call, `/backends/${backendOf(call.line)}/cordon`),
  },
  {
    name: "drain",
    args: ["BACKEND"],
    options: ["deadline", "hold", ...ACTION],
    summary: "take nothing new, wait until nothing runs",
    run(call) {
      const { line } = call;
      const body = { hold: line.flags.has("hold"), ...deadlineOf(line.text.deadline) };
      return act(call, `/backends/${backendOf(line)}/drain`, { body });
    },
  },
  {
    name: "resume",
    args: ["BACKEND"],
    options: ACTION,
    summary: "lift cordon and drain",
    run: (call) => act(call, `/backends/${backendOf(call.line)}/resume`),
  },
  {
    name: "capacity",
    args: ["BACKEND", "SLOTS|default"],
    options: ACTION,
    summary: "slots in place of the configured",
    run(call) {
      const body = { capacity: slotsOf(argument(call.line, 1)) };
      return act(call, `/backends/${backendOf(call.line)}/capacity`, { body });
    },
  },
  {
    name: "label",
    args: ["BACKEND", "vm|vm-dev|default"],
    options: ACTION,
    summary: "canary label or its own",
    run(call) {
      const label = argument(call.line, 1);
      const body = { label: label === "default" ? null : label };
      return act(call, `/backends/${backendOf(call.line)}/label`, { body });
    },
  },
  {
    name: "cancel",
    args: ["ID"],
    options: ACTION,
    summary: "cancel a job",
    run: (call) => act(call, `/assignments/${idOf(call.line)}/cancel`),
  },
  {
    name: "retry",
    args: ["ID"],
    options: ACTION,
    summary: "try a parked job now",
    run: (call) => act(call, `/assignments/${idOf(call.line)}/retry`),
  },
  {
    name: "release",
    args: ["ID"],
    options: ["tier", "confirm", "yes", ...ACTION],
    summary: "give a job up; says first what that does",
    run: release,
  },
  {
    name: "release-executor",
    args: ["NAME"],
    options: ["tier", "confirm", "yes", ...ACTION],
    summary: "give up one that nobody can account for",
    run: releaseExecutor,
  },
  {
    name: "undo",
    args: ["OPERATION"],
    options: ACTION,
    summary: "put back what a drain has set",
    run: (call) => act(call, `/operations/${encodeURIComponent(argument(call.line, 0))}/undo`),
  },
  {
    name: "step-down",
    args: [],
    options: ACTION,
    summary: "let another replica lead",
    run: (call) => act(call, "/leader/step-down"),
  },
  {
    name: "operations",
    args: [],
    options: ["target", "state", ...PAGING],
    summary: "what was begun; --target --state",
    run: (call) =>
      list(call, "/operations", { filters: ["target", "state"], show: operationsText }),
  },
  {
    name: "operation",
    args: ["OPERATION"],
    options: ["wait", "timeout"],
    summary: "one of them",
    run(call) {
      const id = encodeURIComponent(argument(call.line, 0));
      return follow(call, () => call.client.get(`/operations/${id}`));
    },
  },
  {
    name: "audit",
    args: [],
    options: ["actor", "action", "target", "result", ...PAGING],
    summary: "who did what; --actor --action --target --result",
    run: (call) =>
      list(call, "/audit", { filters: ["actor", "action", "target", "result"], show: auditText }),
  },
  {
    name: "history",
    args: [],
    options: ["backend", ...PAGING],
    summary: "what happened to jobs; --backend",
    run: (call) => list(call, "/history", { filters: ["backend"], show: historyText }),
  },
  {
    name: "completion",
    args: ["bash|zsh|fish"],
    options: [],
    summary: "completion for a shell",
    run({ line, out }) {
      const shell = SHELLS.find((each) => each === argument(line, 0));
      if (shell === undefined) throw new UsageError(`Choose one of ${SHELLS.join(", ")}`);
      out(completionOf(shell, COMMANDS));
      return Promise.resolve(EXIT.done);
    },
  },
];

/** Runs one command; resolves to the exit code. Rejects with `UsageError` for a line that does not fit. */
export async function runCommand(line: Line, deps: CommandDeps): Promise<number> {
  const command = COMMANDS.find(({ name }) => name === line.command);
  if (command === undefined) {
    throw new UsageError(`Choose a command: there is no "${line.command}"`);
  }
  checkLine(line, command);
  return await command.run({ ...deps, line });
}
