import type { ReasonCode } from "../controller/model/reason.ts";
import type { HourView } from "../controller/views/operating_views.ts";
import type { AssignmentView, BackendView, OperationView } from "../controller/views/views.ts";
import type { Acting } from "./acting.ts";
import { BackendActions } from "./BackendActions.tsx";
import { Flags, Numbers } from "./Backends.tsx";
import { hrefOf } from "./board.ts";
import type { Dated } from "./dated.ts";
import { HourChart } from "./HourChart.tsx";
import { JobLink, Why } from "./JobTables.tsx";
import { fill, number, useLang } from "./lang.ts";
import { Operations } from "./Operations.tsx";
import { PageHead, Panel, Scroller, Table } from "./Parts.tsx";
import { Slots } from "./Slots.tsx";
import { Age, Outside, StateMark } from "./Small.tsx";

/** What the page of one backend shows. */
export interface BackendData extends Dated {
  readonly backend: BackendView;
  readonly hour: HourView;
  /** The next ones, oldest first, and how many there are. */
  readonly waiting: { readonly items: readonly AssignmentView[]; readonly total: number };
  /** Jobs that hold a slot. */
  readonly running: readonly AssignmentView[];
  readonly operations: readonly OperationView[];
  readonly acting: Acting;
}

/** One backend: its slots, what waits for them, how it does, and what operators have set. */
export function BackendPage({ data }: { data: BackendData }) {
  const lang = useLang();
  const { backend: text, backends: words, pages } = lang.dict;
  const { backend } = data;
  const jobs = new Map(
    [...data.waiting.items, ...data.running].map((job) => [job.id as string, job]),
  );
  const [tone, state] = backend.drain !== null
    ? ["wait", backend.drain.hold ? text.holding : text.draining]
    : backend.cordoned !== null
    ? ["wait", text.cordoned]
    : ["good", text.open];
  return (
    <>
      <PageHead title={<BackendTitle title={pages.backend} name={backend.name} />}>
        <span class={`mark ${tone}`}>{state}</span>
        <span class="mute">
          {words.label}{" "}
          <code>
            <Outside text={backend.label} max={60} />
          </code>
        </span>
        <span class="num mute">
          {fill(words.inUse, { used: backend.used, capacity: backend.capacity })}
        </span>
      </PageHead>
      <section class="panel backend" aria-label={words.title}>
        <Flags backend={backend} />
        <Overrides backend={backend} />
        <Slots backend={backend} jobs={jobs} />
        <Numbers backend={backend} />
      </section>
      <BackendActions backend={backend} acting={data.acting} operations={data.operations} />
      <HourChart hour={data.hour} />
      <div class="columns">
        <Waiting data={data} />
        <Failures backend={backend} />
      </div>
      <Panel
        id="operations"
        title={text.operations}
        aside={<span class="count num">{data.operations.length}</span>}
        kind="list"
      >
        {data.operations.length === 0
          ? <p class="empty">{text.noOperations}</p>
          : <Operations items={data.operations} name={text.operations} target={false} />}
      </Panel>
    </>
  );
}

function BackendTitle({ title, name }: { title: string; name: string }) {
  const [before = "", after = ""] = title.split("{name}");
  return (
    <>
      {before}
      <strong class="mono">{name}</strong>
      {after}
    </>
  );
}

/** Values that operators have set in place of the configured ones, with who and why. */
function Overrides({ backend }: { backend: BackendView }) {
  const { backend: text } = useLang().dict;
  const { capacity, label } = backend.overrides;
  return (
    <>
      {([[text.capacity, capacity], [text.label, label]] as const).map(([name, flag]) => {
        if (flag === null) return null;
        const { value, replaced, by, note, at } = flag;
        const [before = "", after = ""] = fill(text.override, { value, replaced, by }).split("{t}");
        return (
          <p key={name} class="notice flag">
            <strong>{name}</strong> <Outside text={before} max={200} />
            <Age at={at} />
            <Outside text={after} max={200} />
            {note === "" ? null : (
              <q class="note">
                <Outside text={note} max={300} />
              </q>
            )}
          </p>
        );
      })}
    </>
  );
}

function Waiting({ data }: { data: BackendData }) {
  const lang = useLang();
  const { backend: text, columns, groups } = lang.dict;
  const { items, total } = data.waiting;
  return (
    <Panel
      id="waiting"
      title={text.waiting}
      aside={
        <span class="count num">
          {items.length < total
            ? fill(groups.shown, { shown: items.length, total: number(lang, total) })
            : number(lang, total)}
        </span>
      }
      kind="list"
    >
      {items.length === 0 ? <p class="empty">{text.noneWait}</p> : (
        <Scroller name={text.waiting}>
          <Table
            columns={[
              ["position", columns.position],
              ["name", columns.job],
              ["state", columns.state],
              ["why", columns.why],
              ["age", columns.waiting],
            ]}
          >
            {items.map((job) => (
              <tr key={job.id}>
                <td class="num strong">{job.position ?? <span class="mute">–</span>}</td>
                <td class="head">
                  <JobLink job={job} />
                </td>
                <td>
                  <StateMark state={job.state} />
                </td>
                <td class="why">
                  <Why job={job} />
                </td>
                <td class="num" data-label={columns.waiting}>
                  <Age at={job.createdAt} />
                </td>
              </tr>
            ))}
          </Table>
        </Scroller>
      )}
      {items.length < total
        ? (
          <nav class="more" aria-label={text.waiting}>
            <a href={hrefOf({ backend: data.backend.name, list: "waiting" })}>{text.allWaiting}</a>
          </nav>
        )
        : null}
    </Panel>
  );
}

function Failures({ backend }: { backend: BackendView }) {
  const lang = useLang();
  const { backend: text, reasons } = lang.dict;
  const failures = (Object.entries(backend.failures) as [ReasonCode, number][])
    .toSorted((a, b) => b[1] - a[1]);
  return (
    <Panel id="failures" title={text.failures} kind="list">
      {failures.length === 0
        ? <p class="empty">{text.noFailures}</p>
        : (
          <Table columns={[["reason", text.reason], ["count", text.count]]}>
            {failures.map(([code, count]) => (
              <tr key={code}>
                <td class="head">
                  {reasons[code]} <code>{code}</code>
                </td>
                <td class="num right strong" data-label={text.count}>{number(lang, count)}</td>
              </tr>
            ))}
          </Table>
        )}
    </Panel>
  );
}
