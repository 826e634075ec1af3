import { useLang } from "./lang.ts";
import { Maybe, PageHead, Panel, Scroller, Table } from "./Parts.tsx";

/** A parameter, or a member of a body. */
export interface DescribedField {
  readonly name: string;
  /** `path`, `query`, `header` or `body`. */
  readonly where: string;
  readonly required: boolean;
  readonly type: string;
  readonly description: string;
}

/** One method of one address. */
export interface DescribedOperation {
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly fields: readonly DescribedField[];
  readonly answers: readonly { readonly status: string; readonly description: string }[];
}

/** What the page shows. */
export interface ApiData {
  readonly operations: readonly DescribedOperation[];
}

/** The JSON API for people: every address of the OpenAPI document, what it takes and what it answers. */
export function ApiPage({ data }: { data: ApiData }) {
  const { api: text } = useLang().dict;
  const reads = data.operations.filter(({ method }) => method === "GET");
  const actions = data.operations.filter(({ method }) => method !== "GET");
  return (
    <>
      <PageHead title={text.title}>
        <a class="button push" href="/api/v1/openapi.json">{text.document}</a>
      </PageHead>
      <p class="mute">{text.about}</p>
      <Panel id="reads" title={text.reads} aside={<span class="count num">{reads.length}</span>}>
        {reads.map((one) => <Operation key={one.path} operation={one} />)}
      </Panel>
      <Panel
        id="actions"
        title={text.actions}
        aside={<span class="count num">{actions.length}</span>}
      >
        {actions.map((one) => <Operation key={one.path} operation={one} />)}
      </Panel>
    </>
  );
}

/** In the document's own words: they are English. */
function Operation({ operation }: { operation: DescribedOperation }) {
  const { api: text } = useLang().dict;
  const { method, path, summary, description, fields, answers } = operation;
  const name = `${method} ${path}`;
  return (
    <details class="operation">
      <summary>
        <span class={`method ${method === "GET" ? "read" : "act"}`}>{method}</span>{" "}
        <code>{path}</code> <span class="mute" lang="en">{summary}</span>
      </summary>
      {description === "" ? null : <p class="inset-text" lang="en">{description}</p>}
      {fields.length === 0 ? null : (
        <Scroller name={`${name}: ${text.takes}`}>
          <Table
            kind="takes"
            columns={[
              ["name", text.name],
              ["where", text.where],
              ["type", text.type],
              ["detail", text.meaning],
            ]}
          >
            {fields.map((one) => (
              <tr key={`${one.where} ${one.name}`}>
                <td class="mono head">{one.name}</td>
                <td data-label={text.where}>
                  {one.where}
                  {one.required ? <span class="badge">{text.required}</span> : null}
                </td>
                <td class="mono wrap" data-label={text.type}>
                  <Maybe text={one.type} max={200} />
                </td>
                <td class="detail" lang="en" data-label={text.meaning}>
                  <Maybe text={one.description} max={300} />
                </td>
              </tr>
            ))}
          </Table>
        </Scroller>
      )}
      <dl class="answers" aria-label={text.answers}>
        {answers.map(({ status, description }) => (
          <div key={status}>
            <dt class="mono">{status}</dt>
            <dd lang="en">{description}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
