import type { Result } from "../controller/model/reason.ts";
import type { StateName } from "../controller/model/state.ts";
import type { AssignmentView } from "../controller/views/views.ts";
import { inert } from "./inert.ts";
import { clockTime, coarse, duration, fill, plural, useLang } from "./lang.ts";
import { useNow } from "./now.ts";

/** Text from outside, isolated from the direction of the text around it. */
export function Outside({ text, max }: { text: string; max?: number }) {
  return <bdi>{inert(text, max)}</bdi>;
}

/** Time since `at`, ticking; `ago` puts it into words. The exact time is in the tooltip. */
export function Age({ at, ago = false }: { at: string | null; ago?: boolean }) {
  const lang = useLang();
  const now = useNow();
  if (at === null) return <span class="mute">{lang.dict.unknown}</span>;
  const text = coarse(lang, Math.max(0, now - Date.parse(at)));
  return (
    <time class="num" dateTime={at} title={at}>
      {ago ? fill(lang.dict.ago, { t: text }) : text}
    </time>
  );
}

/** Time until `at`, ticking. */
export function Until({ at, text }: { at: string; text: string }) {
  const lang = useLang();
  const now = useNow();
  const ms = Date.parse(at) - now;
  const t = ms <= 0 ? lang.dict.now : fill(lang.dict.in, { t: coarse(lang, ms) });
  return <time class="num" dateTime={at} title={at}>{fill(text, { t })}</time>;
}

/** The UTC time of day of `at`. */
export function At({ at, millis = false }: { at: string; millis?: boolean }) {
  const now = useNow();
  const text = clockTime(at, now);
  const fraction = /\.\d{1,3}/.exec(at)?.[0] ?? ".000";
  return (
    <time class="num mono" dateTime={at} title={at}>
      {text}
      {millis ? <span class="mute">{fraction}</span> : null}
    </time>
  );
}

/** Colour family of a state; shape and word say the same without colour. */
export function toneOf(state: StateName): "wait" | "start" | "run" | "done" | "bad" {
  switch (state) {
    case "stored":
      return "wait";
    case "admitted":
    case "starting":
    case "ready":
      return "start";
    case "claimed":
    case "running":
      return "run";
    case "terminal":
    case "cleaned":
      return "done";
    case "parked":
    case "invalid":
      return "bad";
    default:
      return state satisfies never;
  }
}

/** The shape of a state. */
export function Glyph({ state }: { state: StateName }) {
  return <svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">{shapeOf(state)}</svg>;
}

function shapeOf(state: StateName) {
  const ring = <circle cx="6" cy="6" r="4.75" class="line" />;
  switch (state) {
    case "stored":
      return ring;
    case "admitted":
      return (
        <>
          {ring}
          <path d="M6 6V1.25A4.75 4.75 0 0 1 10.75 6Z" class="fill" />
        </>
      );
    case "starting":
      return (
        <>
          {ring}
          <path d="M6 1.25a4.75 4.75 0 0 1 0 9.5Z" class="fill" />
        </>
      );
    case "ready":
      return (
        <>
          {ring}
          <path d="M6 1.25A4.75 4.75 0 1 1 1.25 6H6Z" class="fill" />
        </>
      );
    case "claimed":
      return (
        <>
          {ring}
          <circle cx="6" cy="6" r="2.5" class="fill" />
        </>
      );
    case "running":
      return <path d="M2.5 1.2v9.6L10.8 6Z" class="fill" />;
    case "terminal":
      return <rect x="1.75" y="1.75" width="8.5" height="8.5" rx="1" class="fill" />;
    case "cleaned":
      return <path d="m1.8 6.6 2.8 2.9 5.6-7" class="line" />;
    case "parked":
      return <path d="M3.8 1.8v8.4M8.2 1.8v8.4" class="line" />;
    case "invalid":
      return <path d="m2 2 8 8M10 2l-8 8" class="line" />;
    default:
      return state satisfies never;
  }
}

/** A state as shape and word. */
export function StateMark({ state }: { state: StateName }) {
  const { dict } = useLang();
  return (
    <span class={`mark ${toneOf(state)}`}>
      <Glyph state={state} />
      {dict.states[state]}
    </span>
  );
}

/** A result as shape and word. */
export function ResultMark({ result }: { result: Result | null }) {
  const { dict } = useLang();
  if (result === null) return <span class="mute">{dict.unknown}</span>;
  const [tone, path] = result === "success"
    ? ["good", "m1.8 6.6 2.8 2.9 5.6-7"]
    : result === "failure"
    ? ["bad", "m2 2 8 8M10 2l-8 8"]
    : ["wait", "M2 6h8"];
  return (
    <span class={`mark ${tone}`}>
      <svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">
        <path d={path} class="line" />
      </svg>
      {dict.results[result]}
    </span>
  );
}

/** Marks code that may come from outside its repository. */
export function ForkBadge() {
  const { dict } = useLang();
  return <span class="badge fork" title={dict.row.forkTitle}>{dict.row.fork}</span>;
}

/** Behind a reason: how often it was tried, and when it is tried again. */
export function Tries({ job }: { job: Pick<AssignmentView, "failures" | "nextTryAt"> }) {
  const lang = useLang();
  const { row } = lang.dict;
  return (
    <>
      {job.failures > 0
        ? <span class="num bad">{plural(lang, row.failures, job.failures)}</span>
        : null}
      {job.nextTryAt === null ? null : (
        <span class="mute">
          <Until at={job.nextTryAt} text={row.tryAt} />
        </span>
      )}
    </>
  );
}

/** Two durations, p50 and p95; an unknown one is a dash, never 0. */
export function Percentiles({ p50, p95 }: { p50: number | null; p95: number | null }) {
  const lang = useLang();
  const say = (ms: number | null) => ms === null ? "–" : duration(lang, ms);
  if (p50 === null && p95 === null) return <span class="mute">{lang.dict.unknown}</span>;
  return <span class="num">{say(p50)} / {say(p95)}</span>;
}
