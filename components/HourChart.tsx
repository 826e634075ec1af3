import type { HourView, MinuteView } from "../controller/views/operating_views.ts";
import { clockTime, duration, fill, number, plural, useLang } from "./lang.ts";
import { useNow } from "./now.ts";
import { Panel, Scroller, Table } from "./Parts.tsx";

/**
 * Waiting jobs and start times of the last hour, a bar for each minute. Drawn as SVG with attributes,
 * since the content security policy allows no inline style; minutes that nobody measured are hatched.
 */
export function HourChart({ hour }: { hour: HourView }) {
  const lang = useLang();
  const now = useNow();
  const { hour: text } = lang.dict;
  const sum = (pick: (minute: MinuteView) => number | null) =>
    hour.minutes.reduce((total, minute) => total + (pick(minute) ?? 0), 0);
  const failed = sum((minute) => minute.failed);
  return (
    <Panel
      id="hour"
      title={text.title}
      aside={
        <span class="push mute num">
          {plural(lang, text.ended, sum((minute) => minute.ended))}
          {failed === 0
            ? null
            : <span class="bad">{` · ${plural(lang, text.failed, failed)}`}</span>}
        </span>
      }
    >
      <div class="charts">
        <Bars
          minutes={hour.minutes}
          name={text.waiting}
          pick={(minute) => minute.waiting}
          say={(n) => number(lang, n)}
          most={text.most.replace("{n}", "{t}")}
          empty={fill(text.most, { n: 0 })}
        />
        <Bars
          minutes={hour.minutes}
          name={text.start}
          pick={(minute) => minute.startMs}
          say={(ms) => duration(lang, ms)}
          most={text.longest}
          empty={text.none}
        />
      </div>
      <p class="empty small">
        {fill(text.since, { t: clockTime(hour.since, now) })}
      </p>
      <Minutes minutes={hour.minutes} />
    </Panel>
  );
}

const HEIGHT = 64;

function Bars(
  { minutes, name, pick, say, most, empty }: {
    minutes: readonly MinuteView[];
    name: string;
    pick: (minute: MinuteView) => number | null;
    say: (value: number) => string;
    /** With `{t}` for the highest value. */
    most: string;
    empty: string;
  },
) {
  const lang = useLang();
  const { hour: text } = lang.dict;
  const now = useNow();
  const highest = Math.max(0, ...minutes.map((minute) => pick(minute) ?? 0));
  const summary = highest === 0 ? empty : fill(most, { t: say(highest) });
  const width = 100 / minutes.length;
  const time = (minute: MinuteView | undefined) =>
    minute === undefined ? "" : clockTime(minute.at, now).slice(0, -3);
  return (
    <figure class="chart">
      <figcaption>
        <span>{name}</span> <span class="push num strong">{summary}</span>
      </figcaption>
      <svg
        width="100%"
        height={HEIGHT}
        role="img"
        aria-label={`${text.title}: ${name}, ${summary}`}
      >
        {minutes.map((minute, index) => {
          const value = pick(minute);
          const unmeasured = minute.waiting === null;
          const high = value === null || highest === 0 ? 0 : Math.max(2, HEIGHT * value / highest);
          const title = unmeasured ? text.unmeasured : value === null ? "–" : say(value);
          return (
            <g key={minute.at}>
              <title>{`${fill(text.minute, { t: time(minute) })} · ${title}`}</title>
              <rect
                x={`${(index * width).toFixed(3)}%`}
                width={`${width.toFixed(3)}%`}
                y="0"
                height={HEIGHT}
                class={unmeasured ? "unmeasured" : "ground"}
              />
              {value === null || value === 0 ? null : (
                <rect
                  x={`${(index * width + width * 0.12).toFixed(3)}%`}
                  width={`${(width * 0.76).toFixed(3)}%`}
                  y={(HEIGHT - high).toFixed(1)}
                  height={high.toFixed(1)}
                  class="bar"
                />
              )}
            </g>
          );
        })}
        <line x1="0" x2="100%" y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} class="axis" />
      </svg>
      <div class="axis-times num mute" aria-hidden="true">
        {[0, 20, 40, 59].map((index) => <span key={index}>{time(minutes[index])}</span>)}
      </div>
    </figure>
  );
}

/** The same in numbers, for those who do not see bars; only minutes in which something happened. */
function Minutes({ minutes }: { minutes: readonly MinuteView[] }) {
  const lang = useLang();
  const now = useNow();
  const { hour: text } = lang.dict;
  const some = minutes.filter((minute) =>
    (minute.waiting ?? 0) > 0 || (minute.started ?? 0) > 0 || (minute.ended ?? 0) > 0
  ).toReversed();
  if (some.length === 0) return null;
  return (
    <details class="unfold">
      <summary>{text.table}</summary>
      <Scroller name={text.table}>
        <Table
          columns={[
            ["time", text.time],
            ["waiting", text.waiting],
            ["starts", text.started],
            ["start", text.start],
            ["ends", text.endedColumn],
            ["fails", text.failedColumn],
          ]}
        >
          {some.map((minute) => (
            <tr key={minute.at}>
              <td class="num mono">{clockTime(minute.at, now).slice(0, -3)}</td>
              <td class="num" data-label={text.waiting}>{minute.waiting}</td>
              <td class="num" data-label={text.started}>{minute.started}</td>
              <td class="num" data-label={text.start}>
                {minute.startMs === null ? "–" : duration(lang, minute.startMs)}
              </td>
              <td class="num" data-label={text.endedColumn}>{minute.ended}</td>
              <td class="num" data-label={text.failedColumn}>{minute.failed}</td>
            </tr>
          ))}
        </Table>
      </Scroller>
    </details>
  );
}
