import type { ComponentChildren } from "preact";
import type { AssignmentDetailView } from "../controller/views/views.ts";
import { number, useLang } from "./lang.ts";
import { At, ForkBadge, Outside, Until } from "./Small.tsx";

/** Ids, identity, queue and times of one assignment. */
export function Facts({ job }: { job: AssignmentDetailView }) {
  const lang = useLang();
  const { assignment: text } = lang.dict;
  const count = (n: number | null) =>
    n === null ? <Unknown /> : <span class="num">{number(lang, n)}</span>;
  return (
    <section class="panel" aria-labelledby="facts">
      <header>
        <h2 id="facts">{text.facts}</h2>
      </header>
      <dl class="facts">
        <Fact name={text.identity} wide>
          <span class="mono wrap">
            <Outside text={job.spiffeId} />
          </span>
          {job.fork ? <ForkBadge /> : null}
          <span class="mute block">{job.fork ? text.fork : text.own}</span>
        </Fact>
        <Fact name={text.executor} wide>
          {job.executor === null
            ? <Nothing />
            : (
              <a class="mono wrap" href={`/executors?backend=${job.backend}`}>
                <Outside text={job.executor} />
              </a>
            )}
        </Fact>
        <Fact name={text.backend}>
          <a class="mono" href={`/backends/${job.backend}`}>{job.backend}</a>
        </Fact>
        <Fact name={text.owner}>
          <Outside text={job.owner} max={200} />
        </Fact>
        <Fact name={text.ref}>
          {job.ref === null ? <Unknown /> : (
            <span class="mono wrap">
              <Outside text={job.ref} max={300} />
            </span>
          )}
        </Fact>
        <Fact name={text.task}>
          <span class="mono">{job.taskId}</span>
        </Fact>
        <Fact name={text.run}>
          {job.runId === null ? <Unknown /> : (
            <span class="mono">
              <Outside text={job.runId} max={100} />
            </span>
          )}
        </Fact>
        <Fact name={text.created}>
          <At at={job.createdAt} />
        </Fact>
        <Fact name={text.updated}>
          <At at={job.updatedAt} />
        </Fact>
        <Fact name={text.position}>
          {job.position === null ? <Nothing /> : count(job.position)}
        </Fact>
        <Fact name={text.sequence}>{count(job.streamSequence)}</Fact>
        <Fact name={text.deliveries}>{count(job.deliveries)}</Fact>
        <Fact name={text.failures}>{count(job.failures)}</Fact>
        <Fact name={text.nextTry}>
          {job.nextTryAt === null ? <Nothing /> : <Until at={job.nextTryAt} text="{t}" />}
        </Fact>
        <Fact name={text.epoch}>{count(job.epoch)}</Fact>
        {job.traceId === null ? null : (
          <Fact name={text.trace} wide>
            <span class="mono wrap">{job.traceId}</span>
          </Fact>
        )}
      </dl>
    </section>
  );
}

function Fact(
  { name, wide = false, children }: { name: string; wide?: boolean; children: ComponentChildren },
) {
  return (
    <div class={wide ? "wide" : ""}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Unknown() {
  const { dict } = useLang();
  return <span class="mute">{dict.unknown}</span>;
}

function Nothing() {
  const { dict } = useLang();
  return <span class="mute">{dict.none}</span>;
}
