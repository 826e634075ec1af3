import type { ComponentChildren } from "preact";
import type { AssignmentView } from "../controller/views/views.ts";
import { type Board, type GroupName, hrefOf, onlyGroup, ROWS } from "./board.ts";
import type { Dict } from "./i18n/dict.ts";
import { fill, number, useLang } from "./lang.ts";
import { LongRows, useScrolls } from "./LongRows.tsx";
import { Age, ForkBadge, Outside, ResultMark, StateMark, Tries } from "./Small.tsx";
import { Took } from "./Took.tsx";

/** A list of jobs with its heading, its size, and what to say when it is empty. */
function JobList(
  { board, name, empty, columns, cells }: {
    board: Board;
    name: GroupName;
    empty: ComponentChildren;
    columns: readonly (keyof Dict["columns"])[];
    cells: (job: AssignmentView) => ComponentChildren;
  },
) {
  const lang = useLang();
  const { groups } = lang.dict;
  const { items, total } = board[name];
  const long = board.first && total > ROWS[name] && name !== "ended";
  const scrolls = useScrolls() && long;
  const oldest = name === "waiting" ? items[0] : undefined;
  const { backend, state, repository } = board.filters;
  const filtered = backend !== null || state !== null || repository !== null;
  return (
    <section class="panel list" aria-labelledby={name}>
      <header>
        <h2 id={name}>{groups[name]}</h2>
        <span class="count num">
          {items.length < total && !scrolls
            ? fill(groups.shown, {
              shown: number(lang, items.length),
              total: number(lang, total),
            })
            : number(lang, total)}
        </span>
        {oldest === undefined || !board.first ? null : (
          <span class="push mute">
            <Oldest at={oldest.createdAt} />
          </span>
        )}
      </header>
      {items.length === 0
        ? <div class="empty">{filtered ? groups.noneMatch : empty}</div>
        : (
          <LongRows
            name={name}
            group={board[name]}
            long={long}
            columns={columns.length}
            head={
              <thead>
                <tr>
                  {columns.map((column) => (
                    <th key={column} scope="col" class={`c-${column}`}>
                      {lang.dict.columns[column]}
                    </th>
                  ))}
                </tr>
              </thead>
            }
            row={(job, place) => <tr key={job.id} class="row" {...place}>{cells(job)}</tr>}
          />
        )}
      <More board={board} name={name} />
    </section>
  );
}

function Oldest({ at }: { at: string }) {
  const { dict } = useLang();
  const [before = "", after = ""] = dict.groups.oldest.split("{t}");
  return (
    <>
      {before}
      <Age at={at} />
      {after}
    </>
  );
}

function More({ board, name }: { board: Board; name: GroupName }) {
  const { groups } = useLang().dict;
  const { filters, nextCursor, first } = board;
  if (onlyGroup(filters) !== null) {
    if (board[name].items.length === 0 || (first && nextCursor === null)) return null;
    return (
      <nav class="more" aria-label={groups[name]}>
        {first ? null : <a href={hrefOf(filters)}>{groups.first}</a>}
        {nextCursor === null
          ? null
          : <a href={hrefOf(filters, nextCursor)} rel="next">{groups.next}</a>}
      </nav>
    );
  }
  if (board[name].items.length >= board[name].total) return null;
  return (
    <nav class="more" aria-label={groups[name]}>
      <a href={hrefOf({ ...filters, list: name })}>{groups.all}</a>
    </nav>
  );
}

/** Jobs whose runner does not have them yet, each with its one reason and the evidence. */
export function Waiting({ board, empty }: { board: Board; empty: ComponentChildren }) {
  const { columns } = useLang().dict;
  const names = ["position", "job", "backend", "state", "why", "since", "waiting"] as const;
  return (
    <JobList
      board={board}
      name="waiting"
      empty={empty}
      columns={names}
      cells={(job) => (
        <>
          <td class="num pos">{job.position ?? <span class="mute">–</span>}</td>
          <JobCell job={job} />
          <td class="mono backend-cell">{job.backend}</td>
          <td class="state-cell">
            <StateMark state={job.state} />
          </td>
          <td class="why">
            <Why job={job} />
          </td>
          <td class="num since" data-label={columns.since}>
            <Age at={job.reason?.since ?? null} />
          </td>
          <td class="num age" data-label={columns.waiting}>
            <Age at={job.createdAt} />
          </td>
        </>
      )}
    />
  );
}

/** Jobs at work. */
export function Running({ board }: { board: Board }) {
  const { columns, empty } = useLang().dict;
  const names = ["job", "backend", "state", "executor", "started", "age"] as const;
  return (
    <JobList
      board={board}
      name="running"
      empty={empty.running}
      columns={names}
      cells={(job) => (
        <>
          <JobCell job={job} />
          <td class="mono backend-cell">{job.backend}</td>
          <td class="state-cell">
            <StateMark state={job.state} />
          </td>
          <td class="mono executor">
            {job.executor === null ? <span class="mute">–</span> : <Outside text={job.executor} />}
            {job.reason === null ? null : <Why job={job} />}
          </td>
          <td class="num since" data-label={columns.started}>
            <Age at={job.updatedAt} />
          </td>
          <td class="num age" data-label={columns.age}>
            <Age at={job.createdAt} />
          </td>
        </>
      )}
    />
  );
}

/** Jobs that ended lately, newest first. */
export function Ended({ board }: { board: Board }) {
  const { columns, empty } = useLang().dict;
  const names = ["job", "backend", "result", "why", "took", "ended"] as const;
  return (
    <JobList
      board={board}
      name="ended"
      empty={empty.ended}
      columns={names}
      cells={(job) => (
        <>
          <JobCell job={job} />
          <td class="mono backend-cell">{job.backend}</td>
          <td class="state-cell">
            {job.state === "invalid"
              ? <StateMark state="invalid" />
              : <ResultMark result={job.result} />}
          </td>
          <td class="why">
            {job.reason === null ? <span class="mute">–</span> : <Why job={job} />}
          </td>
          <td class="num since" data-label={columns.took}>
            <Took from={job.createdAt} to={job.updatedAt} />
          </td>
          <td class="num age" data-label={columns.ended}>
            <Age at={job.updatedAt} ago />
          </td>
        </>
      )}
    />
  );
}

function JobCell({ job }: { job: AssignmentView }) {
  return (
    <td class="job">
      <JobLink job={job} />
    </td>
  );
}

/** A job by repository and name, with its id. */
export function JobLink({ job }: { job: AssignmentView }) {
  return (
    <>
      <a class="job-link" href={`/assignments/${job.id}`}>
        <Outside text={job.repository} max={120} /> <span class="sep" aria-hidden="true">›</span>
        {" "}
        <strong>
          <Outside text={job.job} max={120} />
        </strong>
      </a>
      <span class="sub">
        <span class="mono mute">{job.id}</span>
        {job.ref === null ? null : (
          <span class="mute ref">
            <Outside text={job.ref.replace(/^refs\/heads\//, "")} max={60} />
          </span>
        )}
        {job.fork ? <ForkBadge /> : null}
      </span>
    </>
  );
}

/** The one reason why a job waits or failed, with the evidence. */
export function Why({ job }: { job: AssignmentView }) {
  const { reasons, row } = useLang().dict;
  const { reason } = job;
  if (reason === null) return <span class="mute">{row.noReason}</span>;
  return (
    <>
      <span class="because">
        <span>{reasons[reason.code]}</span> <code>{reason.code}</code>
        <Tries job={job} />
      </span>
      {reason.detail === "" ? null : (
        <span class="evidence">
          <Outside text={reason.detail} max={300} />
        </span>
      )}
    </>
  );
}
