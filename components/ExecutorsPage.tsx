import type { BackendName } from "../controller/model/ids.ts";
import type { ExecutorView } from "../controller/views/views.ts";
import { mayAct } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import { fill, number, useLang } from "./lang.ts";
import { type ListData, listHref } from "./list_query.ts";
import { FilterForm, Maybe, PageHead, Pager, Panel, Scroller, Table } from "./Parts.tsx";
import { Age, Outside } from "./Small.tsx";

/** An executor with the number of its slot; null when it holds none that is known. */
export interface ExecutorRow extends ExecutorView {
  readonly slot: number | null;
  readonly capacity: number | null;
}

/** What the page shows: executors of ours, page by page, and all others before them. */
export interface ExecutorsData extends ListData<ExecutorRow> {
  readonly backends: readonly BackendName[];
  readonly acting: Acting;
}

const PATH = "/executors";

/** All executors, unknown and foreign ones first: those need a person. */
export function ExecutorsPage({ data }: { data: ExecutorsData }) {
  const lang = useLang();
  const { executors: text, pages, filters: filterText } = lang.dict;
  const strange = data.items.filter((row) => row.ownership !== "ours");
  const ours = data.items.filter((row) => row.ownership === "ours");
  return (
    <>
      <PageHead title={pages.executors} />
      <FilterForm
        path={PATH}
        data={data}
        fields={[
          {
            name: "backend",
            label: filterText.backend,
            value: data.filters["backend"] ?? null,
            options: data.backends.map((name) => [name, name]),
          },
          {
            name: "recovered",
            label: text.filterRecovered,
            value: data.filters["recovered"] ?? null,
            options: [["true", text.onlyRecovered], ["false", text.notRecovered]],
          },
        ]}
      />
      {strange.length === 0 ? null : (
        <Panel
          id="strangers"
          title={text.strangers}
          aside={<span class="count num">{strange.length}</span>}
          kind="list"
        >
          <dl class="legend">
            {(["unknown", "foreign"] as const).map((kind) => (
              <div key={kind}>
                <dt>{text.ownership[kind]}</dt>
                <dd>{text.about[kind]}</dd>
              </div>
            ))}
          </dl>
          <Rows rows={strange} name={text.strangers} may={mayAct(data.acting)} />
        </Panel>
      )}
      <Panel
        id="executors"
        title={pages.executors}
        aside={<span class="count num">{number(lang, data.total - strange.length)}</span>}
        kind="list"
      >
        {ours.length === 0
          ? (
            <p class="empty">
              {Object.values(data.filters).some(Boolean) ? pages.noMatch : text.empty}
            </p>
          )
          : <Rows rows={ours} name={pages.executors} may={mayAct(data.acting)} />}
        <Pager
          name={pages.executors}
          first={data.first ? null : listHref(PATH, data.filters)}
          next={data.nextCursor === null ? null : listHref(PATH, data.filters, data.nextCursor)}
        />
      </Panel>
    </>
  );
}

function Rows(
  { rows, name, may }: { rows: readonly ExecutorRow[]; name: string; may: boolean },
) {
  const { executors: text, columns, acting } = useLang().dict;
  return (
    <Scroller name={name}>
      <Table
        kind="executors"
        columns={[
          ["executor", text.name],
          ["backend", columns.backend],
          ["phase", text.phase],
          ["slot", text.slot],
          ["node", text.node],
          ["age", text.age],
          ["heard", text.heartbeat],
          ["why", text.why],
          ...may ? [["act", acting.title]] as const : [],
        ]}
      >
        {rows.map((row) => (
          <Row
            key={`${row.backend}/${row.name}/${row.uid}`}
            row={row}
            may={may}
          />
        ))}
      </Table>
    </Scroller>
  );
}

function Row({ row, may }: { row: ExecutorRow; may: boolean }) {
  const { executors: text, acting } = useLang().dict;
  const release = row.assignmentId !== null
    ? `/assignments/${row.assignmentId}/release`
    : row.ownership === "foreign"
    ? null
    : `/executors/${encodeURIComponent(row.name)}/release`;
  return (
    <tr>
      <td class="head">
        {row.assignmentId === null
          ? (
            <span class="mono strong">
              <Outside text={row.name} max={120} />
            </span>
          )
          : (
            <a class="row-link mono" href={`/assignments/${row.assignmentId}`}>
              <Outside text={row.name} max={120} />
            </a>
          )}
        <span class="stack mono mute">
          {row.assignmentId === null ? null : <Outside text={row.assignmentId} max={60} />}
          {row.uid === null ? null : (
            <span title={text.uid}>
              <Outside text={row.uid} max={60} />
            </span>
          )}
        </span>
      </td>
      <td class="mono">{row.backend}</td>
      <td data-label={text.phase}>
        <Outside text={row.phase} max={60} />
        <span class="block small mute">
          {row.terminal ? text.terminal : row.claimed ? text.claimed : ""}
        </span>
      </td>
      <td class="num" data-label={text.slot}>
        <SlotOf row={row} />
      </td>
      <td class="mono" data-label={text.node}>
        <Maybe text={row.node} max={80} />
      </td>
      <td class="num" data-label={text.age}>
        <Age at={row.createdAt} />
      </td>
      <td class="num" data-label={text.heartbeat}>
        {row.heartbeatAt === null
          ? <span class="mute">{row.ownership === "ours" ? text.never : "–"}</span>
          : <Age at={row.heartbeatAt} ago />}
      </td>
      <td class="why">
        {row.ownership === "ours" ? null : <OwnershipBadge kind={row.ownership} />}
        {row.recovered === null ? null : <Recovered recovered={row.recovered} />}
        {row.why === null ? null : (
          <span class="evidence">
            <Outside text={row.why} max={300} />
          </span>
        )}
        {row.ownership === "ours" && row.recovered === null && row.why === null
          ? <span class="mute">–</span>
          : null}
      </td>
      {may ? <td>{release === null ? null : <a href={release}>{acting.release}</a>}</td> : null}
    </tr>
  );
}

function SlotOf({ row }: { row: ExecutorRow }) {
  const { executors: text } = useLang().dict;
  if (row.slot !== null) {
    return <>{fill(text.slotOf, { n: row.slot, capacity: row.capacity ?? "?" })}</>;
  }
  return <span class="mute">{row.ownership === "unknown" ? text.keepsSlot : text.noSlot}</span>;
}

function OwnershipBadge({ kind }: { kind: "unknown" | "foreign" }) {
  const { executors: text } = useLang().dict;
  return (
    <span class={kind === "unknown" ? "badge bad" : "badge mute"} title={text.about[kind]}>
      {text.ownership[kind]}
    </span>
  );
}

/** Badge of an executor that start-up found again, with its proof. */
export function Recovered({ recovered }: { recovered: NonNullable<ExecutorView["recovered"]> }) {
  const { executors: text } = useLang().dict;
  const by = fill(text.recoveredBy, { proof: text.proofs[recovered.proof] });
  const [before = "", after = ""] = by.split("{t}");
  return (
    <span class="recovered">
      <span class="badge start">{text.recovered}</span>{" "}
      <span class="small mute">
        {before}
        <Age at={recovered.at} />
        {after}
      </span>
    </span>
  );
}
