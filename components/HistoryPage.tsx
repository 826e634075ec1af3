import type { HistoryEntryView } from "../controller/views/views.ts";
import { duration, useLang } from "./lang.ts";
import { type ListData, listHref } from "./list_query.ts";
import { FilterForm, Maybe, PageHead, Pager, Panel, Scroller, Table } from "./Parts.tsx";
import { At, Outside } from "./Small.tsx";

/** What the page shows. */
export type HistoryData = ListData<HistoryEntryView>;

const PATH = "/history";
const EVENTS = [
  "received",
  "capacity_wait",
  "capacity_acquired",
  "executor_absent",
  "executor_created",
  "executor_found",
  "identity_target_pending",
  "identity_bound",
  "backend_retry",
  "backend_pending",
  "backend_ready",
  "claim_timeout",
  "runner_claimed",
  "acked",
  "running",
  "terminal",
  "marked",
  "cleaned",
  "parked",
  "cancelled",
  "lost",
  "unreadable",
  "invalid assignment",
  "conflicting assignment",
];

/** What happened to all assignments, newest first. */
export function HistoryPage({ data }: { data: HistoryData }) {
  const lang = useLang();
  const { history: text, pages, filters: filterText } = lang.dict;
  const { filters } = data;
  const filtered = Object.values(filters).some((value) => value !== null);
  return (
    <>
      <PageHead title={pages.history}>
        <span class="mute">{text.kept}</span>
      </PageHead>
      <FilterForm
        path={PATH}
        data={data}
        fields={[
          {
            name: "backend",
            label: filterText.backend,
            value: filters["backend"] ?? null,
            options: [["pod", "pod"], ["vm", "vm"]],
          },
          {
            name: "event",
            label: text.event,
            value: filters["event"] ?? null,
            options: EVENTS.map((name) => [name, name]),
          },
          {
            name: "assignment",
            label: text.assignment,
            value: filters["assignment"] ?? null,
            placeholder: "gitea-task-812",
          },
        ]}
      />
      <Panel id="history" title={pages.history} kind="list">
        {data.items.length === 0
          ? (
            <p class="empty">
              {!filtered ? text.empty : data.nextCursor === null ? pages.noMatch : text.scanned}
            </p>
          )
          : (
            <Scroller name={pages.history}>
              <Table
                kind="events"
                columns={[
                  ["seq", "#"],
                  ["time", text.time],
                  ["event", text.event],
                  ["job", text.job],
                  ["backend", text.backend],
                  ["phase", text.phase],
                  ["executor", text.executor],
                  ["retry", text.retry],
                  ["detail", text.detail],
                ]}
              >
                {data.items.map((entry, index) => (
                  <Row key={entry.seq ?? `${entry.at}${index}`} entry={entry} />
                ))}
              </Table>
            </Scroller>
          )}
        <Pager
          name={pages.history}
          first={data.first ? null : listHref(PATH, filters)}
          next={data.nextCursor === null ? null : listHref(PATH, filters, data.nextCursor)}
          files={[
            [pages.csv, listHref("/history/csv", filters)],
            [pages.json, listHref("/history/json", filters)],
          ]}
        />
      </Panel>
    </>
  );
}

function Row({ entry }: { entry: HistoryEntryView }) {
  const lang = useLang();
  const { history: text } = lang.dict;
  return (
    <tr>
      <td class="num mute" data-label="#">{entry.seq ?? "–"}</td>
      <td>
        <At at={entry.at} millis />
      </td>
      <td class="mono strong">
        <Outside text={entry.event} max={60} />
      </td>
      <td class="mono">
        <a class="row-link" href={`/assignments/${entry.assignmentId}`}>
          <Outside text={entry.assignmentId} max={60} />
        </a>
      </td>
      <td class="mono">{entry.backend}</td>
      <td data-label={text.phase}>
        <Maybe text={entry.phase} max={60} />
      </td>
      <td class="mono" data-label={text.executor}>
        <Maybe text={entry.executor} max={80} />
      </td>
      <td class="num" data-label={text.retry}>
        {entry.retryDelayMs === 0
          ? <span class="mute">–</span>
          : duration(lang, entry.retryDelayMs)}
      </td>
      <td class="detail">
        <Maybe text={entry.detail} max={300} />
      </td>
    </tr>
  );
}
