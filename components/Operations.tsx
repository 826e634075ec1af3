import type { OperationView } from "../controller/views/views.ts";
import { Target } from "./AuditPage.tsx";
import { fill, number, useLang } from "./lang.ts";
import { Maybe, Scroller, Table } from "./Parts.tsx";
import { Age, Outside } from "./Small.tsx";
import { Took } from "./Took.tsx";

const TONES = { running: "run", done: "good", failed: "bad", undone: "off" } as const;

/** Operations as rows that stay: who, what, how far, result. */
export function Operations(
  { items, name, target = true }: {
    items: readonly OperationView[];
    name: string;
    /** False where all have the same one. */
    target?: boolean;
  },
) {
  const { dict } = useLang();
  const { operation: text } = dict;
  return (
    <Scroller name={name}>
      <Table
        kind="operations"
        columns={[
          ["action", text.action],
          ...target ? [["target", text.target]] as const : [],
          ["state", text.state],
          ["progress", text.progress],
          ["by", text.by],
          ["note", text.note],
          ["started", text.started],
          ["took", text.took],
        ]}
      >
        {items.map((operation) => (
          <tr key={operation.id}>
            <td class="head">
              <a class="row-link strong" href={`/operations/${encodeURIComponent(operation.id)}`}>
                <Outside text={text.actions[operation.action] ?? operation.action} max={60} />
              </a>
            </td>
            {target
              ? (
                <td class="mono" data-label={text.target}>
                  <Target target={operation.target} />
                </td>
              )
              : null}
            <td>
              <OperationState state={operation.state} />
              {operation.error === null ? null : (
                <span class="evidence">
                  <Outside text={operation.error} max={200} />
                </span>
              )}
            </td>
            <td class="num" data-label={text.progress}>
              <Progress operation={operation} />
            </td>
            <td data-label={text.by}>
              <Outside text={operation.by} max={80} />
            </td>
            <td class="detail" data-label={text.note}>
              <Maybe text={operation.note} max={200} />
            </td>
            <td class="num" data-label={text.started}>
              <Age at={operation.startedAt} ago />
            </td>
            <td class="num" data-label={text.took}>
              {operation.endedAt === null
                ? <Age at={operation.startedAt} />
                : <Took from={operation.startedAt} to={operation.endedAt} />}
            </td>
          </tr>
        ))}
      </Table>
    </Scroller>
  );
}

/** State of an operation as shape and word. */
export function OperationState({ state }: { state: OperationView["state"] }) {
  const { operation: text } = useLang().dict;
  const path = {
    running: "M2.5 1.2v9.6L10.8 6Z",
    done: "m1.8 6.6 2.8 2.9 5.6-7",
    failed: "m2 2 8 8M10 2l-8 8",
    undone: "M2 6h8",
  }[state];
  return (
    <span class={`mark ${TONES[state]}`}>
      <svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">
        <path d={path} class={state === "running" ? "fill" : "line"} />
      </svg>
      {text.states[state]}
    </span>
  );
}

/** How far an operation is, in words and as a bar. */
export function Progress({ operation }: { operation: OperationView }) {
  const lang = useLang();
  const { operation: text } = lang.dict;
  const { done, total } = operation.progress;
  if (total === 0) return <span class="mute">–</span>;
  const say = fill(text.of, { done: number(lang, done), total: number(lang, total) });
  return (
    <span class="progress">
      <progress value={done} max={total} aria-label={text.progress} /> {say}
    </span>
  );
}
