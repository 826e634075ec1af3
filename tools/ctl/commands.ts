import type { ReleasePreview } from "../../controller/actions/release_preview.ts";
import type {
  AssignmentDetailView,
  AssignmentView,
  AuditView,
  BackendView,
  ExecutorView,
  HistoryEntryView,
  OperationView,
  Page,
  StatusView,
} from "../../controller/views/views.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  argument,
  backendOf,
  checkLine,
  deadlineOf,
  idOf,
  ifMatch,
  type Line,
  queryOf,
  slotsOf,
  timeoutOf,
} from "./arguments.ts";
import type { ApiAnswer, ApiClient } from "./client.ts";
import { completionOf, SHELLS } from "./completion.ts";
import {
  assignmentsText,
  assignmentText,
  auditText,
  backendsText,
  executorsText,
  historyText,
  operationsText,
  operationText,
  previewText,
  statusText,
} from "./render.ts";
import { EXIT, UsageError } from "./usage.ts";

/** What a command works with. */
export interface CommandDeps {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Answers of people; null where nobody can be asked. */
  readonly ask: ((question: string) => string | null) | null;
  readonly out: (text: string) => void;
  /** Prints what an answer means, and gives the exit code. */
  conclude(answer: ApiAnswer, show: (body: unknown) => string): number;
}

const POLL_MS = 500;

/** Runs one command; resolves to the exit code. Throws `UsageError` for a line that does not fit. */
export async function runCommand(line: Line, deps: CommandDeps): Promise<number> {
  checkLine(line);
  const { client, clock } = deps;
  const now = clock.now();
  const read = async <T>(path: string, show: (body: T, now: number) => string) =>
    deps.conclude(await client.get(path), (body) => show(body as T, now));
  const list = <T>(
    path: string,
    filters: readonly string[],
    show: (page: Page<T>, now: number) => string,
  ) => read<Page<T>>(path + queryOf(line, [...filters, "limit", "cursor"]), show);
  const act = async (path: string, body: Readonly<Record<string, unknown>> = {}, tag?: string) =>
    await follow(
      line,
      deps,
      await client.post(path, { note: line.text.note ?? "", ...body }, {
        "idempotency-key": line.text.key ?? crypto.randomUUID(),
        ...ifMatch(line.text["if-match"] ?? tag),
      }),
    );
  const backend = () => `/backends/${backendOf(line)}`;

  switch (line.command) {
    case "status":
      return await read<StatusView>("/status", statusText);
    case "backends":
      return await read<Page<BackendView>>("/backends", ({ items }) => backendsText(items, now));
    case "assignments":
      return await list<AssignmentView>(
        "/assignments",
        ["backend", "state", "repository"],
        assignmentsText,
      );
    case "assignment":
      return await read<AssignmentDetailView>(`/assignments/${idOf(line)}`, assignmentText);
    case "executors":
      return await list<ExecutorView>("/executors", ["backend"], executorsText);
    case "cordon":
    case "resume":
      return await act(`${backend()}/${line.command}`);
    case "drain": {
      const hold = line.flags.has("hold");
      return await act(`${backend()}/drain`, { hold, ...deadlineOf(line.text.deadline) });
    }
    case "capacity":
      return await act(`${backend()}/capacity`, { capacity: slotsOf(argument(line, 1)) });
    case "label": {
      const label = argument(line, 1);
      return await act(`${backend()}/label`, { label: label === "default" ? null : label });
    }
    case "cancel":
    case "retry":
      return await act(`/assignments/${idOf(line)}/${line.command}`);
    case "release":
      return await release(line, deps, act);
    case "release-executor": {
      const name = argument(line, 0);
      const { tier, confirm = "" } = line.text;
      if (tier === undefined) throw new UsageError("Choose how: --tier forced or forget");
      if (!line.flags.has("yes")) throw new UsageError("Add --yes: it cannot be undone");
      return await act(`/executors/${encodeURIComponent(name)}/release`, { tier, confirm });
    }
    case "undo":
      return await act(`/operations/${encodeURIComponent(argument(line, 0))}/undo`);
    case "step-down":
      return await act("/leader/step-down");
    case "operations":
      return await list<OperationView>("/operations", ["target", "state"], operationsText);
    case "operation": {
      const id = encodeURIComponent(argument(line, 0));
      return await follow(line, deps, await client.get(`/operations/${id}`));
    }
    case "audit":
      return await list<AuditView>("/audit", ["actor", "action", "target", "result"], auditText);
    case "history":
      return await list<HistoryEntryView>("/history", ["backend"], historyText);
    case "completion": {
      const shell = SHELLS.find((each) => each === argument(line, 0));
      if (shell === undefined) throw new UsageError(`Choose one of ${SHELLS.join(", ")}`);
      deps.out(completionOf(shell));
      return EXIT.done;
    }
    default:
      throw new UsageError(`Choose a command: there is no "${line.command}"`);
  }
}

/** Says what it will do, and to which job, before it does it; nothing is preset. */
async function release(
  line: Line,
  deps: CommandDeps,
  act: (path: string, body: Readonly<Record<string, unknown>>, tag: string) => Promise<number>,
): Promise<number> {
  const id = idOf(line);
  const { tier, confirm } = line.text;
  if (tier === undefined) throw new UsageError("Choose how: --tier graceful, forced or forget");
  const path = `/assignments/${id}`;
  const answer = await deps.client.get(`${path}/preview?tier=${encodeURIComponent(tier)}`);
  if (answer.status !== 200) return deps.conclude(answer, () => "");
  const preview = answer.body as ReleasePreview;
  const json = line.flags.has("json");
  if (!json) deps.out(previewText(preview));
  const body = { tier, ...tier === "forget" ? { confirm: confirm ?? "" } : {} };
  if (line.flags.has("yes")) return await act(`${path}/release`, body, preview.tag);
  if (json || deps.ask === null) throw new UsageError("Add --yes: there is nobody to ask");
  if (tier === "forget") {
    const typed = deps.ask(`Type "${id}" to forget it:`);
    return await act(`${path}/release`, { tier, confirm: typed ?? "" }, preview.tag);
  }
  const answered = deps.ask('Type "yes" to do it:');
  if (answered?.trim() !== "yes") {
    deps.out("Nothing was done.\n");
    return EXIT.refused;
  }
  return await act(`${path}/release`, body, preview.tag);
}

/** With --wait until the operation has ended; progress is shown when it changes. */
async function follow(line: Line, deps: CommandDeps, first: ApiAnswer): Promise<number> {
  const show = (body: unknown) => operationText(body as OperationView);
  const begun = first.status === 200 || first.status === 202;
  if (!begun || !line.flags.has("wait")) return deps.conclude(first, show);
  const end = deps.clock.now() + timeoutOf(line.text.timeout);
  let answer = first;
  let shown = "";
  while (answer.status < 300) {
    const operation = answer.body as OperationView;
    const text = show(operation);
    if (operation.state !== "running") break;
    if (deps.clock.now() >= end) {
      deps.conclude(answer, show);
      return EXIT.unfinished;
    }
    if (text !== shown && !line.flags.has("json")) deps.out(text);
    shown = text;
    await deps.clock.sleep(POLL_MS, deps.signal);
    answer = await deps.client.get(`/operations/${encodeURIComponent(operation.id)}`);
  }
  const code = deps.conclude(answer, show);
  const failed = code === EXIT.done && (answer.body as OperationView).state === "failed";
  return failed ? EXIT.unfinished : code;
}
