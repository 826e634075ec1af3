import type { CanaryView, LabelView } from "../controller/views/operating_views.ts";
import { ActionPanel, Step } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import type { Dated } from "./dated.ts";
import { clockTime, fill, number, plural, useLang } from "./lang.ts";
import { useNow } from "./now.ts";
import { Fact, PageHead, Panel, Scroller } from "./Parts.tsx";
import { Age, At, Outside, Percentiles } from "./Small.tsx";

/** What the page shows. */
export interface CanaryData extends Dated {
  readonly canary: CanaryView;
  readonly acting: Acting;
}

/** The label of the vm backend: what is declared, and how both labels do beside each other. */
export function CanaryPage({ data }: { data: CanaryData }) {
  const { dict } = useLang();
  const { canary: text, pages, backend: words } = dict;
  const { canary } = data;
  const { override } = canary;
  if (!canary.enabled) {
    return (
      <>
        <PageHead title={pages.canary} />
        <p class="panel empty">{text.disabled}</p>
      </>
    );
  }
  return (
    <>
      <PageHead title={pages.canary}>
        {canary.declared === null
          ? <span class="mark wait">{text.withdrawn}</span>
          : (
            <span class={`mark ${canary.declared === "vm" ? "good" : "start"}`}>
              <code>{canary.declared}</code> {text.isDeclared}
            </span>
          )}
      </PageHead>
      <Panel id="label" title={words.label}>
        <dl class="facts">
          <Fact name={text.declared}>
            {canary.declared === null ? text.withdrawn : <code>{canary.declared}</code>}
          </Fact>
          {canary.declared === null ? null : (
            <Fact name={text.stands}>
              {canary.declaredSince === null ? <span class="mute">{dict.unknown}</span> : (
                <>
                  <At at={canary.declaredSince} />{" "}
                  <span class="mute small">
                    <Age at={canary.declaredSince} ago />
                  </span>
                </>
              )}
            </Fact>
          )}
          <Fact name={text.configured}>
            <code>
              <Outside text={canary.configured} max={40} />
            </code>
          </Fact>
          {override === null ? null : (
            <>
              <Fact name={text.since}>
                <At at={override.at} />{" "}
                <span class="mute small">
                  <Age at={override.at} ago />
                </span>
              </Fact>
              <Fact name={words.by}>
                <Outside text={override.by} max={100} />
              </Fact>
              <Fact name={words.note} wide>
                <Outside text={override.note} max={300} />
              </Fact>
            </>
          )}
        </dl>
        {canary.declared === "vm-dev" ? <p class="empty">{text.pending}</p> : null}
      </Panel>
      <LabelActions canary={canary} acting={data.acting} />
      <Comparison canary={canary} />
      <div class="columns even">
        {canary.labels.map((label) => <Failures key={label.label} label={label} />)}
      </div>
    </>
  );
}

function LabelActions({ canary, acting }: { canary: CanaryView; acting: Acting }) {
  const { acting: text } = useLang().dict;
  const path = "/actions/backends/vm/label";
  const label = canary.override?.value ?? canary.configured;
  const others = (["vm", "vm-dev"] as const).filter((name) => name !== label);
  return (
    <ActionPanel acting={acting}>
      {others.map((name) => (
        <Step
          key={name}
          name={name}
          needs="admin"
          path={path}
          title={name === "vm" ? text.promote : text.demote}
          about={name === "vm" ? text.promoteText : text.demoteText}
          acting={acting}
          fields={[["label", name]]}
        />
      ))}
    </ActionPanel>
  );
}

function Comparison({ canary }: { canary: CanaryView }) {
  const lang = useLang();
  const now = useNow();
  const { canary: text } = lang.dict;
  const n = (value: number) => number(lang, value);
  const rows: readonly (readonly [string, (label: LabelView) => preact.ComponentChild])[] = [
    [text.waiting, (label) => n(label.waiting)],
    [text.running, (label) => n(label.running)],
    [text.jobs, (label) => n(label.ended)],
    [text.success, (label) => n(label.success)],
    [
      text.failure,
      (label) => <span class={label.failure > 0 ? "bad" : ""}>{n(label.failure)}</span>,
    ],
    [text.cancelled, (label) => n(label.cancelled)],
    [text.rate, (label) => <Rate label={label} />],
    [text.start, (label) => <Percentiles {...label.startMs} />],
  ];
  return (
    <Panel id="compare" title={text.compare} kind="list">
      <Scroller name={text.compare}>
        <table class="compare">
          <thead>
            <tr>
              <td />
              {canary.labels.map((label) => (
                <th key={label.label} scope="col" class="right">
                  <code>{label.label}</code>{" "}
                  <span class="mute">{label.label === "vm" ? text.production : text.canary}</span>
                  {label.declared ? <span class="badge good">{text.isDeclared}</span> : null}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, draw]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {canary.labels.map((label) => (
                  <td key={label.label} class="num right">{draw(label)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroller>
      <p class="empty small">
        {fill(text.counted, { t: clockTime(canary.since, now) })}{" "}
        {canary.unlabelled === 0 ? null : plural(lang, text.unlabelled, canary.unlabelled)}
      </p>
    </Panel>
  );
}

/** Of those that ended by themselves; unknown, not 0 %, while none has. */
function Rate({ label }: { label: LabelView }) {
  const lang = useLang();
  const own = label.success + label.failure;
  if (own === 0) return <span class="mute">{lang.dict.unknown}</span>;
  const rate = new Intl.NumberFormat(lang.locale, { style: "percent", maximumFractionDigits: 1 });
  return <>{rate.format(label.success / own)}</>;
}

function Failures({ label }: { label: LabelView }) {
  const { canary: text, reasons } = useLang().dict;
  return (
    <Panel
      id={`failures-${label.label}`}
      title={
        <>
          {text.failures}: <code>{label.label}</code>
        </>
      }
      kind="list"
    >
      {label.lastFailures.length === 0
        ? <p class="empty">{text.noFailures}</p>
        : (
          <ul class="failures">
            {label.lastFailures.map((failure) => (
              <li key={failure.id}>
                <a class="row-link job-link" href={`/assignments/${failure.id}`}>
                  <Outside text={failure.repository} max={100} />{" "}
                  <span class="sep" aria-hidden="true">›</span>{" "}
                  <strong>
                    <Outside text={failure.job} max={100} />
                  </strong>
                </a>
                <span class="sub">
                  <span class="mono mute">{failure.id}</span>
                  <span class="mute">
                    <Age at={failure.at} ago />
                  </span>
                </span>
                {failure.code === null ? null : (
                  <span class="evidence">
                    {reasons[failure.code]} <code>{failure.code}</code>{" "}
                    <Outside text={failure.detail ?? ""} max={200} />
                  </span>
                )}
              </li>
            ))}
          </ul>
        )}
    </Panel>
  );
}
