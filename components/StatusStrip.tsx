import type { LeaderView, SourceName, SourceView, StatusView } from "../controller/views/views.ts";
import { inert } from "./inert.ts";
import { fill, plural, useLang } from "./lang.ts";
import { Age, Outside } from "./Small.tsx";

const SOURCES: readonly SourceName[] = ["gitea", "nats", "kubernetes", "spire", "opensandbox"];

/** Leader and sources in one strip: state, age, last error. */
export function StatusStrip({ status, at }: { status: StatusView; at: string }) {
  const { dict } = useLang();
  return (
    <section class="panel" aria-label={dict.sources.title}>
      <ul class="strip">
        <Leader leader={status.leader} />
        {SOURCES.map((name) => (
          <Source key={name} name={name} source={status.sources[name]} at={at} />
        ))}
      </ul>
    </section>
  );
}

function Leader({ leader }: { leader: LeaderView }) {
  const lang = useLang();
  const { dict } = lang;
  const held = leader.holder !== null;
  const word = leader.leading
    ? dict.leader.leading
    : held
    ? dict.leader.standby
    : dict.leader.vacant;
  const tone = leader.leading ? "good" : held ? "start" : "bad";
  const name = leader.holder ?? leader.self;
  return (
    <li>
      <p class="strip-name">
        <a href="/leader">{dict.leader.title}</a>
      </p>
      <p class={`mark ${tone}`}>
        <Light kind={leader.leading ? "up" : held ? "degraded" : "down"} />
        {word}
      </p>
      <p class="strip-more mono clip" title={inert(name)}>
        <Outside text={name} />
      </p>
      <p class="strip-more">
        {leader.mode === "none" ? dict.leader.single : (
          <>
            {leader.epoch === null ? null : `${fill(dict.leader.epoch, { n: leader.epoch })} · `}
            {plural(lang, dict.leader.replicas, leader.replicas.length)}
          </>
        )}
      </p>
    </li>
  );
}

const TONES = { up: "good", degraded: "wait", down: "bad", unused: "off", unknown: "off" } as const;

function Source(
  { name, source, at }: { name: SourceName; source: SourceView; at: string },
) {
  const { dict } = useLang();
  const heard = source.ageMs === null
    ? null
    : new Date(Date.parse(at) - source.ageMs).toISOString();
  return (
    <li class={source.state === "unused" ? "off" : ""}>
      <p class="strip-name">{dict.sources[name]}</p>
      <p class={`mark ${TONES[source.state]}`}>
        <Light kind={source.state} />
        {dict.sources.states[source.state]}
        {source.since !== null && source.state !== "up" && source.state !== "unused"
          ? <Age at={source.since} />
          : null}
      </p>
      {source.state === "unused" ? null : (
        <p class="strip-more">
          {heard === null ? dict.sources.neverHeard : (
            <>
              {dict.sources.heard} <Age at={heard} ago />
            </>
          )}
        </p>
      )}
      {source.lastError === null ? null : (
        <p class="strip-error" title={inert(source.lastError)}>
          <span class="sr">{dict.sources.lastError}:</span>
          <Outside text={source.lastError} max={300} />
        </p>
      )}
    </li>
  );
}

/** The lamp of a source: filled disc, triangle, square, ring, question mark. */
function Light({ kind }: { kind: SourceView["state"] }) {
  const shape = {
    up: <circle cx="6" cy="6" r="5" class="fill" />,
    degraded: <path d="M6 .8 11.5 11H.5Z" class="fill" />,
    down: <rect x="1" y="1" width="10" height="10" class="fill" />,
    unused: <path d="M1.5 6h9" class="line" />,
    unknown: <circle cx="6" cy="6" r="4.5" class="line dash" />,
  }[kind];
  return <svg class="glyph" viewBox="0 0 12 12" aria-hidden="true">{shape}</svg>;
}

/** What the page must say before everything else: standby, recovery, a source that is silent. */
export function StatusNotices({ status }: { status: StatusView }) {
  const { dict } = useLang();
  const { leader } = status;
  const led = leader.holder !== null && leader.holder !== leader.self;
  const silent = SOURCES.filter((name) =>
    status.sources[name].state === "down" || status.sources[name].state === "unknown"
  );
  return (
    <>
      {leader.leading || leader.mode === "none" && !led ? null : (
        <p class="notice">
          <strong>{dict.standby.title}</strong> {leader.holder === null
            ? fill(dict.standby.nobody, { s: leader.leaseSeconds ?? dict.unknown })
            : fill(dict.standby.text, { leader: inert(leader.holder, 200) })}
          {status.eventsAt == null
            ? null
            : ` ${fill(dict.standby.events, { at: status.eventsAt.slice(11, 19) })}`}
        </p>
      )}
      {status.ready ? null : <p class="notice wait">{dict.recovering}</p>}
      {silent.length === 0 ? null : (
        <p class="notice wait">
          {fill(dict.partial, { sources: silent.map((name) => dict.sources[name]).join(", ") })}
        </p>
      )}
    </>
  );
}
