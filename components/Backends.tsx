import type { AssignmentView, BackendView } from "../controller/views/views.ts";
import { type Board, hrefOf } from "./board.ts";
import { fill, number, plural, useLang } from "./lang.ts";
import { Slots } from "./Slots.tsx";
import { Age, At, Outside, Percentiles } from "./Small.tsx";

/** Every backend with its slots as blocks and its numbers. */
export function Backends({ board }: { board: Board }) {
  const { dict } = useLang();
  const { backends } = board.status;
  const jobs = new Map(
    [...board.waiting.items, ...board.running.items].map((job) => [job.id as string, job]),
  );
  return (
    <section aria-labelledby="backends">
      <h2 id="backends" class="sr">{dict.backends.title}</h2>
      {backends.length === 0
        ? <p class="panel empty">{dict.backends.absent}</p>
        : (
          <div class="backends">
            {backends.map((backend) => (
              <Backend
                key={backend.name}
                backend={backend}
                jobs={jobs}
              />
            ))}
          </div>
        )}
    </section>
  );
}

function Backend(
  { backend, jobs }: { backend: BackendView; jobs: ReadonlyMap<string, AssignmentView> },
) {
  const { dict } = useLang();
  const text = dict.backends;
  return (
    <article class="panel backend" aria-label={backend.name}>
      <header>
        <h3 class="mono">
          <a href={`/backends/${backend.name}`}>{backend.name}</a>
        </h3>
        <span class="mute">
          {text.label}{" "}
          <code>
            <Outside text={backend.label} max={60} />
          </code>
        </span>
        <span class="push num">
          {fill(text.inUse, { used: backend.used, capacity: backend.capacity })}
        </span>
      </header>
      <Flags backend={backend} />
      <Slots backend={backend} jobs={jobs} />
      <Numbers backend={backend} />
    </article>
  );
}

/** Cordon or drain, with who set it, when and why; nothing when there is none. */
export function Flags({ backend }: { backend: BackendView }) {
  const lang = useLang();
  const { backends: text } = lang.dict;
  const { cordoned, drain } = backend;
  const flag = drain ?? cordoned;
  if (flag === null) return null;
  const word = drain === null ? text.cordoned : drain.hold ? text.holding : text.draining;
  const [before = "", after = ""] = text.byAt.split("{t}");
  return (
    <p class="notice wait flag">
      <strong>{word}</strong> <Outside text={fill(before, { by: flag.by })} max={200} />
      <Age at={flag.at} />
      {after}
      {drain === null ? null : (
        <>
          {" · "}
          <span class="num">{plural(lang, text.remaining, drain.remaining)}</span>
          {drain.deadline === null ? null : (
            <>
              {" · "}
              <Deadline at={drain.deadline} />
            </>
          )}
        </>
      )}
      {flag.note === "" ? null : (
        <q class="note">
          <Outside text={flag.note} max={300} />
        </q>
      )}
    </p>
  );
}

function Deadline({ at }: { at: string }) {
  const { dict } = useLang();
  const [before = "", after = ""] = dict.backends.deadline.split("{t}");
  return (
    <>
      {before}
      <At at={at} />
      {after}
    </>
  );
}

/** What waits, runs, starts and fails, in numbers. */
export function Numbers({ backend }: { backend: BackendView }) {
  const lang = useLang();
  const { backends: text, unknown, reasons } = lang.dict;
  const failures = Object.entries(backend.failures) as [keyof typeof reasons, number][];
  const count = (n: number | null) => n === null ? "–" : number(lang, n);
  return (
    <dl class="numbers">
      <div>
        <dt>{text.waiting}</dt>
        <dd class="num">
          <a href={hrefOf({ backend: backend.name, state: "stored" })}>{count(backend.waiting)}</a>
        </dd>
      </div>
      <div>
        <dt>{text.running}</dt>
        <dd class="num">{count(backend.running)}</dd>
      </div>
      <div>
        <dt>{text.parked}</dt>
        <dd class={backend.parked > 0 ? "num bad" : "num"}>
          {backend.parked === 0
            ? count(0)
            : (
              <a href={hrefOf({ backend: backend.name, state: "parked" })}>
                {count(backend.parked)}
              </a>
            )}
        </dd>
      </div>
      <div>
        <dt>{text.unknown}</dt>
        <dd class={backend.unknown > 0 ? "num bad" : "num"}>{count(backend.unknown)}</dd>
      </div>
      <div>
        <dt>{text.start}</dt>
        <dd>
          <Percentiles {...backend.startMs} />
        </dd>
      </div>
      <div>
        <dt>{text.queue}</dt>
        <dd class="num">
          {backend.numPending === null && backend.numAckPending === null
            ? <span class="mute">{unknown}</span>
            : `${count(backend.numPending)} / ${count(backend.numAckPending)}`}
        </dd>
      </div>
      {failures.length === 0 ? null : (
        <div class="wide">
          <dt>{text.failures}</dt>
          <dd>
            {failures.map(([code, n]) => (
              <span key={code} class="failure" title={reasons[code]}>
                <code>{code}</code> <span class="num">{count(n)}</span>
              </span>
            ))}
          </dd>
        </div>
      )}
    </dl>
  );
}
