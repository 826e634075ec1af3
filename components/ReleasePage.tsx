import { atLeast } from "../controller/model/role.ts";
import type { ReleasePreview } from "../controller/actions/release_preview.ts";
import { ActionPanel, Hidden, mayAct, NeedsAdmin, Note } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import type { Dated } from "./dated.ts";
import { inert } from "./inert.ts";
import { JobLink } from "./JobTables.tsx";
import { fill, useLang } from "./lang.ts";
import { PageHead, Panel } from "./Parts.tsx";
import { Age, StateMark } from "./Small.tsx";

/** What the page shows: what each tier would do, and to which job. */
export interface ReleaseData extends Dated {
  readonly kind: "cancel" | "release";
  readonly previews: readonly ReleasePreview[];
  readonly acting: Acting;
}

/**
 * A job is given up: what cannot be undone has a page of its own that names the job and says what will
 * happen. Nothing is chosen beforehand; each way has a form and a button of its own.
 */
export function ReleasePage({ data }: { data: ReleaseData }) {
  const { release: text } = useLang().dict;
  const [first] = data.previews;
  if (first === undefined) return null;
  const { assignment: job } = first;
  const name = `${inert(job.repository, 100)} › ${inert(job.job, 100)}`;
  const title = data.kind === "cancel" ? text.cancelTitle : text.title;
  return (
    <>
      <PageHead title={fill(title, { job: name })}>
        <a class="button push" href={`/assignments/${job.id}`}>{text.back}</a>
      </PageHead>
      <Panel id="affected" title={text.affected} aside={<span class="count num">1</span>}>
        <div class="affected">
          <div>
            <JobLink job={job} />
          </div>
          <StateMark state={job.state} />
          <span class="mute">
            <Age at={job.createdAt} />
          </span>
        </div>
      </Panel>
      {mayAct(data.acting)
        ? (
          <div class="tiers">
            {data.previews.map((preview) => (
              <Tier key={preview.tier} preview={preview} kind={data.kind} acting={data.acting} />
            ))}
          </div>
        )
        : <ActionPanel acting={data.acting}>{null}</ActionPanel>}
      <p class="mute">{text.changed}</p>
    </>
  );
}

function Tier(
  { preview, kind, acting }: {
    preview: ReleasePreview;
    kind: ReleaseData["kind"];
    acting: Acting;
  },
) {
  const { release: text } = useLang().dict;
  const { tier, assignment: { id } } = preview;
  const confirm = tier === "forget";
  return (
    <Panel id={`tier-${tier}`} title={text.tiers[tier]} kind={`tier ${tier}`}>
      <p class="inset-text">{text.about[tier]}</p>
      <Fate preview={preview} />
      {preview.refused !== null
        ? (
          <p class="notice wait flag">
            <strong>{text.refused}.</strong> {inert(preview.refused, 300)}
          </p>
        )
        : confirm && !atLeast(acting.role, "admin")
        ? <NeedsAdmin title={text.tiers[tier]} />
        : (
          <form method="post" action={`/actions/assignments/${id}/${kind}`} class="tier-form">
            <Hidden
              acting={{ ...acting, tag: preview.tag }}
              name={tier}
              fields={kind === "release" ? [["tier", tier]] : []}
            />
            <Note name={tier} />
            {confirm
              ? (
                <label class="field grow">
                  <span>{fill(text.confirm, { id })}</span>
                  <input
                    name="confirm"
                    class="mono"
                    required
                    pattern={id}
                    autocomplete="off"
                    spellcheck={false}
                  />
                </label>
              )
              : null}
            <button type="submit" class="danger">{text.buttons[tier]}</button>
          </form>
        )}
    </Panel>
  );
}

/** What becomes of everything that belongs to the job, in the page's language. */
function Fate({ preview }: { preview: ReleasePreview }) {
  const { release: text, results } = useLang().dict;
  const { gitea, slot, executor, identity, message } = preview;
  const result = gitea.result === null ? "" : results[gitea.result];
  const name = executor.name === null ? text.unnamed : inert(executor.name, 120);
  return (
    <ul class="fate">
      <li>{fill(text.gitea[gitea.when], { result })}</li>
      <li>{text.slot[slot]}</li>
      <li>{fill(text.executor[executor.fate], { name })}</li>
      {identity === "none" ? null : <li>{text.identity}</li>}
      <li>{text.message[message]}</li>
    </ul>
  );
}
