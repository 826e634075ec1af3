import type { OperationView } from "../controller/views/views.ts";
import { ActionPanel, Step } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import { Target, Value } from "./AuditPage.tsx";
import type { Dated } from "./dated.ts";
import { useLang } from "./lang.ts";
import { OperationState, Progress } from "./Operations.tsx";
import { Fact, Maybe, PageHead, Panel } from "./Parts.tsx";
import { Age, At, Outside } from "./Small.tsx";
import { Took } from "./Took.tsx";

/** What the page shows. */
export interface OperationData extends Dated {
  readonly operation: OperationView;
  readonly acting: Acting;
}

/** One operation from its start to its result; it stays as long as it is kept. */
export function OperationPage({ data }: { data: OperationData }) {
  const { operation: text, pages, acting, audit } = useLang().dict;
  const { operation } = data;
  return (
    <>
      <PageHead
        title={
          <>
            <Outside text={text.actions[operation.action] ?? operation.action} max={60} />{" "}
            <span class="sep" aria-hidden="true">›</span>{" "}
            <strong>
              <Outside text={operation.target} max={100} />
            </strong>
          </>
        }
      >
        <OperationState state={operation.state} />
      </PageHead>
      {operation.error === null ? null : (
        <div class="callout bad">
          <p class="because">
            <strong>{text.error}</strong>
          </p>
          <p class="evidence">
            <Outside text={operation.error} max={1000} />
          </p>
        </div>
      )}
      <Panel id="operation" title={pages.operation}>
        <dl class="facts">
          <Fact name={text.target}>
            <span class="mono">
              <Target target={operation.target} />
            </span>
          </Fact>
          <Fact name={text.progress}>
            <Progress operation={operation} />
          </Fact>
          <Fact name={text.by}>
            <Outside text={operation.by} max={100} />
          </Fact>
          <Fact name={text.started}>
            <At at={operation.startedAt} />{" "}
            <span class="mute small">
              <Age at={operation.startedAt} ago />
            </span>
          </Fact>
          <Fact name={text.ended}>
            {operation.endedAt === null
              ? <span class="mute">–</span>
              : <At at={operation.endedAt} />}
          </Fact>
          <Fact name={text.took}>
            {operation.endedAt === null
              ? <Age at={operation.startedAt} />
              : <Took from={operation.startedAt} to={operation.endedAt} />}
          </Fact>
          <Fact name={audit.change} wide>
            <Value value={operation.before} /> <span aria-hidden="true">→</span>{" "}
            <Value value={operation.after} />
          </Fact>
          <Fact name={text.note} wide>
            <Maybe text={operation.note} max={600} />
          </Fact>
          <Fact name="ID" wide>
            <span class="mono wrap">
              <Outside text={operation.id} max={200} />
            </span>
          </Fact>
        </dl>
      </Panel>
      {operation.action === "drain" && operation.state !== "undone"
        ? (
          <ActionPanel acting={data.acting}>
            <Step
              name="undo"
              path={`/actions/operations/${encodeURIComponent(operation.id)}/undo`}
              title={acting.undo}
              about={acting.undoText}
              acting={data.acting}
            />
          </ActionPanel>
        )
        : null}
    </>
  );
}
