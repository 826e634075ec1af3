import type { AssignmentDetailView, PhaseView } from "../controller/views/views.ts";
import { inert } from "./inert.ts";
import { duration, useLang } from "./lang.ts";
import { useNow } from "./now.ts";
import { At, Outside, Percentiles } from "./Small.tsx";

interface Bar {
  readonly phase: PhaseView;
  readonly ms: number;
  readonly slow: boolean;
  readonly index: number;
}

/**
 * The phases of a job as one bar, and below it each with its duration and the usual one. Drawn as SVG
 * with attributes, since the content security policy allows no inline style.
 */
export function Timeline({ job }: { job: AssignmentDetailView }) {
  const { assignment: text } = useLang().dict;
  const now = useNow();
  const bars = job.phases.map((phase, index): Bar => {
    const ms = Math.max(0, phase.durationMs ?? now - Date.parse(phase.startedAt));
    return { phase, ms, index, slow: phase.p95Ms !== null && ms > phase.p95Ms };
  });
  return (
    <section class="panel timeline" aria-labelledby="timeline">
      <header>
        <h2 id="timeline">{text.timeline}</h2>
        <span class="push mute">{text.scale}</span>
      </header>
      {bars.length === 0 ? <p class="empty">{text.noPhases}</p> : (
        <>
          <Overview bars={bars} />
          <Phases bars={bars} />
        </>
      )}
    </section>
  );
}

/** Square root: a phase of 20 ms stays visible beside one of 20 min. */
const length = (ms: number) => Math.sqrt(ms + 1);
const percent = (part: number, whole: number) => `${(100 * part / whole).toFixed(3)}%`;

function Overview({ bars }: { bars: readonly Bar[] }) {
  const lang = useLang();
  const whole = bars.reduce((sum, { ms }) => sum + length(ms), 0);
  let at = 0;
  return (
    <svg class="overview" width="100%" height="28" aria-hidden="true">
      {bars.map((bar) => {
        const x = at;
        at += length(bar.ms);
        return (
          <rect
            key={bar.index}
            x={percent(x, whole)}
            width={percent(length(bar.ms), whole)}
            y="0"
            height="28"
            class={segment(bar)}
          >
            <title>
              {`${inert(lang.dict.phases[bar.phase.name] ?? bar.phase.name, 80)} · ${
                duration(lang, bar.ms)
              }`}
            </title>
          </rect>
        );
      })}
    </svg>
  );
}

function segment({ phase, slow }: Bar): string {
  return `segment${slow ? " slow" : ""}${phase.durationMs === null ? " lasting" : ""}`;
}

function Phases({ bars }: { bars: readonly Bar[] }) {
  const lang = useLang();
  const { assignment: text } = lang.dict;
  const whole = Math.max(...bars.map(({ ms, phase }) => length(Math.max(ms, phase.p95Ms ?? 0))));
  return (
    <table class="phases">
      <thead>
        <tr>
          <th scope="col">{text.phase}</th>
          <th scope="col" class="phase-start">{text.started}</th>
          <th scope="col" class="right">{text.duration}</th>
          <th scope="col" class="right phase-usual">{text.usual}</th>
          <td class="phase-bar" />
        </tr>
      </thead>
      <tbody>
        {bars.map((bar) => (
          <tr key={bar.index}>
            <th scope="row">
              <span title={inert(bar.phase.name, 60)}>
                <Outside text={lang.dict.phases[bar.phase.name] ?? bar.phase.name} max={80} />
              </span>
            </th>
            <td class="phase-start">
              <At at={bar.phase.startedAt} millis />
            </td>
            <td class={bar.slow ? "num right bad" : "num right"}>
              {duration(lang, bar.ms)}
              {bar.phase.durationMs === null ? <span class="badge lasts">{text.lasts}</span> : null}
              {bar.slow ? <span class="badge" title={text.slow}>{text.overP95}</span> : null}
            </td>
            <td class="right phase-usual">
              <Percentiles p50={bar.phase.p50Ms} p95={bar.phase.p95Ms} />
            </td>
            <td class="phase-bar">
              <PhaseBar bar={bar} whole={whole} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function PhaseBar({ bar, whole }: { bar: Bar; whole: number }) {
  const mark = (ms: number | null, name: string) => {
    if (ms === null) return null;
    const x = percent(length(ms), whole);
    return <line x1={x} x2={x} y1="0" y2="16" class={name} />;
  };
  return (
    <svg width="100%" height="16" aria-hidden="true">
      <rect
        x="0"
        y="4"
        height="8"
        rx="1"
        width={percent(length(bar.ms), whole)}
        class={segment(bar)}
      />
      {mark(bar.phase.p50Ms, "p50")}
      {mark(bar.phase.p95Ms, "p95")}
    </svg>
  );
}
