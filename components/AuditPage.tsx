import { AUDIT_RESULTS } from "../controller/actions/action_kinds.ts";
import type { AuditView } from "../controller/views/views.ts";
import { auditWords } from "./audit_words.ts";
import { inert } from "./inert.ts";
import { useLang } from "./lang.ts";
import { type ListData, listHref } from "./list_query.ts";
import { FilterForm, Maybe, PageHead, Pager, Panel, Scroller, Table } from "./Parts.tsx";
import { At, Outside } from "./Small.tsx";

/** What the page shows. */
export type AuditData = ListData<AuditView>;

const PATH = "/audit";
const TONES = { done: "good", refused: "wait", failed: "bad" } as const;

/** Who did what, refused actions too, newest first. */
export function AuditPage({ data }: { data: AuditData }) {
  const { dict } = useLang();
  const { audit: text, pages } = dict;
  const { filters } = data;
  const value = (name: string) => filters[name] ?? null;
  const filtered = Object.values(filters).some((each) => each !== null);
  return (
    <>
      <PageHead title={pages.audit} />
      <FilterForm
        path={PATH}
        data={data}
        fields={[
          {
            name: "result",
            label: text.result,
            value: value("result"),
            options: AUDIT_RESULTS.map((name) => [
              name,
              text.results[name],
            ]),
          },
          {
            name: "action",
            label: text.action,
            value: value("action"),
            options: Object.entries(dict.operation.actions),
          },
          { name: "actor", label: text.actor, value: value("actor") },
          { name: "target", label: text.target, value: value("target"), placeholder: "vm" },
        ]}
      />
      <Panel id="audit" title={pages.audit} kind="list">
        {data.items.length === 0
          ? <p class="empty">{filtered ? pages.noMatch : text.empty}</p>
          : (
            <Scroller name={pages.audit}>
              <Table
                kind="audit"
                columns={[
                  ["time", text.time],
                  ["actor", text.actor],
                  ["action", text.action],
                  ["target", text.target],
                  ["change", text.change],
                  ["note", text.note],
                  ["result", text.result],
                ]}
              >
                {data.items.map((entry) => <Row key={entry.id} entry={entry} />)}
              </Table>
            </Scroller>
          )}
        <Pager
          name={pages.audit}
          first={data.first ? null : listHref(PATH, filters)}
          next={data.nextCursor === null ? null : listHref(PATH, filters, data.nextCursor)}
          files={[
            [pages.csv, listHref("/audit/csv", filters)],
            [pages.json, listHref("/audit/json", filters)],
          ]}
        />
      </Panel>
    </>
  );
}

function Row({ entry }: { entry: AuditView }) {
  const { dict } = useLang();
  const { audit: text, operation } = dict;
  return (
    <tr>
      <td>
        <At at={entry.at} />
      </td>
      <td class="head">
        <span class="strong">
          <Outside text={entry.actor} max={100} />
        </span>
        <span class="block small mute">
          <Maybe text={entry.role} max={40} />
        </span>
      </td>
      <td data-label={text.action}>
        <Outside text={operation.actions[entry.action] ?? entry.action} max={60} />
      </td>
      <td class="mono" data-label={text.target}>
        <Target target={entry.target} />
      </td>
      <td class="change" data-label={text.change}>
        <Value value={entry.before} /> <span aria-hidden="true">→</span>{" "}
        <Value value={entry.after} />
      </td>
      <td class="detail" data-label={text.note}>
        <Maybe text={entry.note} max={300} />
      </td>
      <td>
        <span class={`mark ${TONES[entry.result]}`} title={`${text.request} ${entry.requestId}`}>
          {text.results[entry.result]}
        </span>
        {entry.error === null ? null : (
          <span class="evidence">
            <Outside text={entry.error} max={300} />
          </span>
        )}
      </td>
    </tr>
  );
}

/** The target of an action as a link to its page, where it has one. */
export function Target({ target }: { target: string }) {
  const href = /^gitea-task-[1-9][0-9]{0,18}$/.test(target)
    ? `/assignments/${target}`
    : target === "pod" || target === "vm"
    ? `/backends/${target}`
    : null;
  return href === null
    ? <Outside text={target} max={100} />
    : <a class="row-link" href={href}>{target}</a>;
}

/** A value of the audit, as words. */
export function Value({ value }: { value: unknown }) {
  const { audit: text } = useLang().dict;
  if (value === null || value === undefined) return <span class="mute">{text.nothing}</span>;
  return <code>{inert(auditWords(value, text.nothing), 200)}</code>;
}
