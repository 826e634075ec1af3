import type { AssignmentDetailView, OperationView } from "../controller/views/views.ts";
import { Hidden, mayAct } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import { hrefOf } from "./board.ts";
import type { Dated } from "./dated.ts";
import { EventsTable } from "./EventsTable.tsx";
import { Facts } from "./Facts.tsx";
import { inert, safeLink } from "./inert.ts";
import { duration, fill, useLang } from "./lang.ts";
import { useNow } from "./now.ts";
import { Age, ForkBadge, Outside, ResultMark, StateMark, toneOf, Tries } from "./Small.tsx";
import { Operations } from "./Operations.tsx";
import { Panel } from "./Parts.tsx";
import { Timeline } from "./Timeline.tsx";

/** What the page of one assignment shows. */
export interface AssignmentData extends Dated {
  readonly assignment: AssignmentDetailView;
  /** What was done to it, newest first. */
  readonly operations: readonly OperationView[];
  readonly acting: Acting;
}

/** One job from Gitea's hand-out to clean-up. */
export function AssignmentPage({ data }: { data: AssignmentData }) {
  const lang = useLang();
  const { dict } = lang;
  const { assignment: job } = data;
  const link = safeLink(job.giteaUrl);
  return (
    <>
      <nav class="crumbs" aria-label={dict.assignment.id}>
        <a href="/">{dict.assignment.back}</a> <span aria-hidden="true">/</span>{" "}
        <span class="mono">{job.id}</span>
      </nav>
      <header class="title">
        <h1>
          <a class="plain" href={hrefOf({ repository: job.repository })}>
            <Outside text={job.repository} max={200} />
          </a>{" "}
          <span class="sep" aria-hidden="true">›</span>{" "}
          <strong>
            <Outside text={job.job} max={200} />
          </strong>
        </h1>
        <StateMark state={job.state} />
        {job.result === null ? null : <ResultMark result={job.result} />}
        {job.fork ? <ForkBadge /> : null}
        <Total job={job} />
        {link === undefined
          ? null
          : (
            <a class="button push" href={link.href} rel="noopener noreferrer external">
              {dict.assignment.gitea}
              <span class="mute">{fill(dict.assignment.giteaHost, { host: link.host })}</span>
            </a>
          )}
      </header>
      <Callout job={job} />
      <JobActions job={job} acting={data.acting} />
      <Timeline job={job} />
      <Facts job={job} />
      {data.operations.length === 0
        ? null
        : (
          <Panel id="operations" title={dict.backend.operations} kind="list">
            <Operations
              items={data.operations}
              name={dict.backend.operations}
              target={false}
            />
          </Panel>
        )}
      <EventsTable id={job.id} events={job.events} />
      <LastLines lines={job.lastLines} />
    </>
  );
}

function Total({ job }: { job: AssignmentDetailView }) {
  const lang = useLang();
  const { assignment: text } = lang.dict;
  const now = useNow();
  const ended = job.state === "cleaned" || job.state === "invalid";
  const end = ended ? Date.parse(job.updatedAt) : now;
  const t = duration(lang, Math.max(0, end - Date.parse(job.createdAt)));
  return <span class="mute num">{fill(ended ? text.total : text.soFar, { t })}</span>;
}

/** The one reason, with its evidence. */
function Callout({ job }: { job: AssignmentDetailView }) {
  const { reasons } = useLang().dict;
  const { reason } = job;
  if (reason === null) return null;
  return (
    <div
      class={toneOf(job.state) === "bad" || job.result === "failure" ? "callout bad" : "callout"}
    >
      <p class="because">
        <strong>{reasons[reason.code]}</strong> <code>{reason.code}</code>{" "}
        <span class="mute">
          <Age at={reason.since} />
        </span>
        <Tries job={job} />
      </p>
      {reason.detail === "" ? null : (
        <p class="evidence">
          <Outside text={reason.detail} />
        </p>
      )}
    </div>
  );
}

/** What may be done with it; what cannot be undone leads to a page that says what it will do. */
function JobActions({ job, acting }: { job: AssignmentDetailView; acting: Acting }) {
  const { acting: text } = useLang().dict;
  // Without a tag the leader knows it from the history only: nothing is left to act on.
  const known = acting.tag !== null && job.state !== "cleaned";
  if (!mayAct(acting) || (!known && job.state !== "parked")) return null;
  return (
    <div class="job-actions">
      {job.state === "parked"
        ? (
          <form method="post" action={`/assignments/${job.id}/retry`}>
            <Hidden acting={acting} name="retry" />
            <button type="submit">{text.retry}</button>
          </form>
        )
        : null}
      {known
        ? (
          <>
            <a class="button" href={`/assignments/${job.id}/cancel`}>{text.cancel}</a>
            <a class="button" href={`/assignments/${job.id}/release`}>{text.release}</a>
          </>
        )
        : null}
    </div>
  );
}

function LastLines({ lines }: { lines: readonly string[] }) {
  const { assignment: text } = useLang().dict;
  if (lines.length === 0) return null;
  return (
    <section class="panel" aria-labelledby="lines">
      <header>
        <h2 id="lines">{text.lines}</h2>
        <span class="push mute">{text.linesNote}</span>
      </header>
      <pre class="lines" tabIndex={0} aria-labelledby="lines">
        {lines.map((line) => inert(line)).join("\n")}
      </pre>
    </section>
  );
}
