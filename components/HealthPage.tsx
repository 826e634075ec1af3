import { useContext } from "preact/hooks";
import type { HealthView, SelfTestView, VersionView } from "../controller/views/operating_views.ts";
import type { Dated } from "./dated.ts";
import { duration, useLang } from "./lang.ts";
import { Maybe, PageHead, Panel, Scroller, Table } from "./Parts.tsx";
import { Age, Outside } from "./Small.tsx";
import { Proof } from "./Proof.tsx";
import { VisitorContext } from "./visitor.ts";

/** What the page shows. */
export interface HealthData extends Dated {
  readonly health: HealthView;
  readonly config: Readonly<Record<string, string | null>>;
}

const TONES = { ok: "good", failed: "bad", running: "run", unknown: "off" } as const;
const VERDICTS = { good: "good", bad: "bad", untried: "wait", unknown: "off" } as const;

/** What proves that the program is well: self tests, versions, configuration. */
export function HealthPage({ data }: { data: HealthData }) {
  const { health: text, pages } = useLang().dict;
  const { selfTests, versions } = data.health;
  return (
    <>
      <PageHead title={pages.health}>
        <a class="button push" href="/health/bundle" download title={text.bundleNote}>
          {text.bundle}
        </a>
      </PageHead>
      <Panel id="tests" title={text.tests} aside={<LastRun tests={selfTests} />} kind="list">
        {selfTests.length === 0 ? <p class="empty">{text.noTests}</p> : (
          <Scroller name={text.tests}>
            <Tests tests={selfTests} />
          </Scroller>
        )}
        <RunAgain disabled={selfTests.length === 0} />
      </Panel>
      <Versions versions={versions} />
      <Configuration config={data.config} />
    </>
  );
}

function RunAgain({ disabled }: { disabled: boolean }) {
  const { health: text } = useLang().dict;
  const visitor = useContext(VisitorContext);
  // The server refuses it to viewers.
  if ("role" in visitor && visitor.role === "viewer") return null;
  return (
    <form method="post" action="/health/run" class="inset">
      <Proof />
      <button type="submit" disabled={disabled}>{text.run}</button>
    </form>
  );
}

function LastRun({ tests }: { tests: readonly SelfTestView[] }) {
  const { health: text } = useLang().dict;
  const newest = tests.flatMap(({ at }) => at ?? []).sort().at(-1);
  if (tests.length === 0) return null;
  if (newest === undefined) return <span class="push mute">{text.never}</span>;
  const [before = "", after = ""] = text.last.split("{t}");
  return (
    <span class="push mute">
      {before}
      <Age at={newest} />
      {after}
    </span>
  );
}

function Tests({ tests }: { tests: readonly SelfTestView[] }) {
  const lang = useLang();
  const { health: text } = lang.dict;
  return (
    <Table
      kind="tests"
      columns={[
        ["name", text.test],
        ["state", text.state],
        ["detail", text.found],
        ["took", text.took],
      ]}
    >
      {tests.map((test) => (
        <tr key={test.name}>
          <td class="head strong">
            <Outside text={text.testNames[test.name] ?? test.name} max={100} />
          </td>
          <td>
            <span class={`mark ${TONES[test.state]}`}>
              <Light state={test.state} />
              {text.states[test.state]}
            </span>
          </td>
          <td class="detail">
            <Maybe text={test.detail} max={400} />
          </td>
          <td class="num" data-label={text.took}>
            {test.tookMs === null ? <span class="mute">–</span> : duration(lang, test.tookMs)}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** A shape for each state, so that nobody depends on the colour. */
function Light({ state }: { state: SelfTestView["state"] }) {
  const path = {
    ok: "m1.8 6.6 2.8 2.9 5.6-7",
    failed: "m2 2 8 8M10 2l-8 8",
    running: "M2.5 1.2v9.6L10.8 6Z",
    unknown: "M2 6h8",
  }[state];
  return (
    <svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">
      <path d={path} class={state === "running" ? "fill" : "line"} />
    </svg>
  );
}

function Versions({ versions }: { versions: readonly VersionView[] }) {
  const { health: text, unknown } = useLang().dict;
  return (
    <Panel id="versions" title={text.versions} kind="list">
      {versions.length === 0
        ? <p class="empty">{text.noVersions}</p>
        : (
          <Scroller name={text.versions}>
            <Table
              kind="versions"
              columns={[
                ["name", text.part],
                ["version", text.version],
                ["verdict", text.verdict],
                ["detail", text.found],
              ]}
            >
              {versions.map(({ name, version, verdict, detail }) => (
                <tr key={name}>
                  <td class="head strong">
                    <Outside text={name} max={80} />
                  </td>
                  <td class="mono">
                    {version === null
                      ? <span class="mute">{unknown}</span>
                      : <Outside text={version} max={80} />}
                  </td>
                  <td data-label={text.verdict}>
                    <span class={`mark ${VERDICTS[verdict]}`}>{text.verdicts[verdict]}</span>
                  </td>
                  <td class="detail">
                    <Maybe text={detail} max={300} />
                  </td>
                </tr>
              ))}
            </Table>
          </Scroller>
        )}
    </Panel>
  );
}

function Configuration({ config }: { config: HealthData["config"] }) {
  const { health: text } = useLang().dict;
  const rows = Object.entries(config).sort(([a], [b]) => a < b ? -1 : 1);
  return (
    <Panel
      id="config"
      title={text.config}
      aside={<span class="push mute">{text.configNote}</span>}
      kind="list"
    >
      <Scroller name={text.config}>
        <Table kind="config" columns={[["name", text.variable], ["value", text.value]]}>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <td class="head mono strong">{name}</td>
              <td class="mono wrap">
                {value === null
                  ? <span class="mute">{text.unset}</span>
                  : value === ""
                  ? <span class="mute">{text.empty}</span>
                  : <Outside text={value} max={500} />}
              </td>
            </tr>
          ))}
        </Table>
      </Scroller>
    </Panel>
  );
}
