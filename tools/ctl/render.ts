import { auditWords } from "../../components/audit_words.ts";
import { inert } from "../../components/inert.ts";
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

// Texts for people. Whatever comes from outside is made harmless for a terminal; unknown is "?".

const UNKNOWN = "?";

/** A table: a header and rows, columns aligned. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  // The last cell pushes nothing aside, and says at its end what to do.
  const clean = [header, ...rows].map((row) =>
    row.map((cell, at) => oneCell(cell, at === header.length - 1 ? 500 : undefined))
  );
  const widths = header.map((_, at) => Math.max(...clean.map((row) => (row[at] ?? "").length)));
  return clean.map((row) =>
    row.map((cell, at) => at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)).join("  ")
      .trimEnd()
  ).join("\n") + "\n";
}

/** `/status`. */
export function statusText(status: StatusView, now: number): string {
  const { leader, sources, backends } = status;
  return [
    `gitea-dynamic-runner ${oneCell(status.version)}, profile ${status.profile}` +
    `${status.ready ? "" : ", not ready yet"}`,
    `leader ${oneCell(leader.holder ?? UNKNOWN)}${leader.leading ? " (this one)" : ""}, ` +
    `epoch ${leader.epoch ?? UNKNOWN}`,
    "",
    table(
      ["SOURCE", "STATE", "SINCE", "LAST ERROR"],
      Object.entries(sources).map(([name, { state, since, lastError }]) => [
        name,
        state,
        since === null ? "" : ago(since, now),
        lastError ?? "",
      ]),
    ),
    backendsText(backends, now),
  ].join("\n");
}

/** Backends. */
export function backendsText(backends: readonly BackendView[], now: number): string {
  return table(
    ["BACKEND", "LABEL", "SLOTS", "WAITING", "RUNNING", "PARKED", "SET BY OPERATORS"],
    backends.map((b) => [
      b.name,
      b.label,
      `${b.used + b.unknown}/${b.capacity}`,
      String(b.waiting),
      String(b.running),
      String(b.parked),
      flagsText(b, now),
    ]),
  );
}

/** A list of jobs. */
export function assignmentsText({ items, total }: Page<AssignmentView>, now: number): string {
  const rows = items.map((a) => [
    a.id,
    a.backend,
    a.state,
    a.result ?? "",
    ago(a.createdAt, now),
    `${a.repository} ${a.job}`,
    a.reason === null ? "" : `${a.reason.code}: ${a.reason.detail}`,
  ]);
  return table(["ID", "BACKEND", "STATE", "RESULT", "AGE", "JOB", "REASON"], rows) +
    more(items.length, total);
}

/** One job with its events. */
export function assignmentText(a: AssignmentDetailView, now: number): string {
  const facts: readonly (readonly [string, string])[] = [
    ["id", a.id],
    ["job", `${a.repository} ${a.job}`],
    ["ref", a.ref ?? UNKNOWN],
    ["state", a.result === null ? a.state : `${a.state}, ${a.result}`],
    ["backend", a.backend],
    ["executor", a.executor ?? "none"],
    ["reason", a.reason === null ? "none" : `${a.reason.code}: ${a.reason.detail}`],
    ["failures", String(a.failures)],
    ["at Gitea", a.giteaUrl ?? UNKNOWN],
    ["SPIFFE ID", a.spiffeId === "" ? UNKNOWN : a.spiffeId],
    ...a.traceId === null ? [] : [["trace", a.traceId] as const],
  ];
  return [
    ...facts.map(([name, value]) => `${name.padEnd(10)} ${oneCell(value)}`),
    "",
    table(
      ["WHEN", "EVENT", "EXECUTOR", "DETAIL"],
      a.events.map((e) => [ago(e.at, now), e.event, e.executor ?? "", e.detail ?? ""]),
    ),
    ...a.lastLines.map((line) => `  | ${oneCell(line, 500)}`),
    "",
  ].join("\n");
}

/** A list of executors. */
export function executorsText({ items, total }: Page<ExecutorView>, now: number): string {
  const rows = items.map((e) => [
    e.name,
    e.backend,
    e.phase,
    e.node ?? "",
    e.createdAt === null ? UNKNOWN : ago(e.createdAt, now),
    e.assignmentId ?? e.ownership,
    e.recovered === null ? e.why ?? "" : `recovered by ${e.recovered.proof}`,
  ]);
  return table(["NAME", "BACKEND", "PHASE", "NODE", "AGE", "OF", "WHY"], rows) +
    more(items.length, total);
}

/** A list of operations. */
export function operationsText({ items, total }: Page<OperationView>, now: number): string {
  const rows = items.map((o) => [
    o.id,
    o.action,
    o.target,
    o.state,
    `${o.progress.done}/${o.progress.total}`,
    ago(o.startedAt, now),
    o.by,
    [o.note, o.error].filter((each) => each).join(" | "),
  ]);
  return table(["OPERATION", "ACTION", "TARGET", "STATE", "DONE", "AGE", "BY", "NOTE"], rows) +
    more(items.length, total);
}

/** One operation on one line. */
export function operationText(o: OperationView): string {
  const { done, total } = o.progress;
  const error = o.error === null ? "" : `: ${oneCell(o.error, 500)}`;
  return `${oneCell(o.id)}  ${o.action} ${
    oneCell(o.target)
  }  ${o.state} ${done}/${total}${error}\n`;
}

/** The audit. */
export function auditText({ items, total }: Page<AuditView>, now: number): string {
  const rows = items.map((a) => [
    ago(a.at, now),
    a.actor,
    a.action,
    a.target,
    a.result,
    a.error ?? `${auditWords(a.before, "nothing")} -> ${auditWords(a.after, "nothing")}`,
    a.note,
  ]);
  return table(["WHEN", "WHO", "WHAT", "TARGET", "RESULT", "CHANGE", "NOTE"], rows) +
    more(items.length, total);
}

/** The history. */
export function historyText({ items, total }: Page<HistoryEntryView>, now: number): string {
  const rows = items.map((e) => [
    ago(e.at, now),
    e.backend,
    e.assignmentId,
    e.event,
    e.detail ?? "",
  ]);
  return table(["WHEN", "BACKEND", "ID", "EVENT", "DETAIL"], rows) + more(items.length, total);
}

/** What a release would do. */
export function previewText({ tier, assignment, refused, text }: ReleasePreview): string {
  const { id, repository, job, state } = assignment;
  return [
    `release (${tier}) of ${oneCell(id)}: ${oneCell(repository)} ${oneCell(job)}, ${state}`,
    ...text.map((line) => `  - ${oneCell(line, 500)}`),
    ...refused === null ? [] : [`  refused: ${oneCell(refused, 500)}`],
    "",
  ].join("\n");
}

function flagsText({ cordoned, drain, overrides }: BackendView, now: number): string {
  const { capacity, label } = overrides;
  const by = (flag: { readonly by: string; readonly at: string; readonly note: string }) =>
    `by ${flag.by} ${ago(flag.at, now)} ago${flag.note === "" ? "" : ` (${flag.note})`}`;
  return [
    ...cordoned === null ? [] : [`cordoned ${by(cordoned)}`],
    ...drain === null
      ? []
      : [`drain${drain.hold ? " with hold" : ""} ${by(drain)}, ${drain.remaining} left`],
    ...capacity === null
      ? []
      : [`capacity ${capacity.value}, not ${capacity.replaced}, ${by(capacity)}`],
    ...label === null ? [] : [`label ${label.value}, not ${label.replaced}, ${by(label)}`],
  ].join("; ");
}

function more(shown: number, total: number): string {
  return shown >= total ? "" : `${total - shown} more: --limit, --cursor\n`;
}

/** The time since, in its largest unit. */
function ago(at: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(at)) / 1_000));
  if (Number.isNaN(seconds)) return UNKNOWN;
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)}h` : `${Math.round(seconds / 86_400)}d`;
}

function oneCell(text: string, max = 120): string {
  return inert(text, max).replaceAll(/[\t\n]+/g, " ");
}
