import { atLeast } from "../controller/model/role.ts";
import type { StrangerTier } from "../controller/actions/action_kinds.ts";
import type { ExecutorView } from "../controller/views/views.ts";
import { ActionPanel, Hidden, mayAct, NeedsAdmin, Note } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import type { Dated } from "./dated.ts";
import { inert } from "./inert.ts";
import { fill, useLang } from "./lang.ts";
import { Fact, Maybe, PageHead, Panel } from "./Parts.tsx";
import { Age, Outside } from "./Small.tsx";

/** What the page shows: an executor that belongs to no job. */
export interface StrangerData extends Dated {
  readonly executor: ExecutorView;
  readonly acting: Acting;
}

const TIERS: readonly StrangerTier[] = ["forced", "forget"];

/** An executor that nobody can account for is given up; nothing is chosen beforehand. */
export function StrangerPage({ data }: { data: StrangerData }) {
  const { stranger: text, release, executors } = useLang().dict;
  const { executor, acting } = data;
  return (
    <>
      <PageHead title={fill(text.title, { name: inert(executor.name, 120) })}>
        <a class="button push" href="/executors">{release.back}</a>
      </PageHead>
      <Panel id="affected" title={release.affected} aside={<span class="count num">1</span>}>
        <dl class="facts">
          <Fact name={executors.name} wide>
            <span class="mono wrap">
              <Outside text={executor.name} max={253} />
            </span>
            <span class="block mono small mute">
              <Maybe text={executor.uid} max={80} />
            </span>
          </Fact>
          <Fact name={executors.why} wide>
            <Maybe text={executor.why} max={300} />
          </Fact>
          <Fact name={executors.phase}>
            <Outside text={executor.phase} max={80} />
          </Fact>
          <Fact name={executors.node}>
            <Maybe text={executor.node} max={100} />
          </Fact>
          <Fact name={executors.age}>
            <Age at={executor.createdAt} />
          </Fact>
        </dl>
        <p class="empty">{text.noJob}</p>
      </Panel>
      {executor.ownership === "foreign"
        ? <p class="notice wait">{executors.about.foreign}</p>
        : mayAct(acting)
        ? (
          <div class="tiers">
            {TIERS.map((tier) => (
              <Tier key={tier} tier={tier} name={executor.name} acting={acting} />
            ))}
          </div>
        )
        : <ActionPanel acting={acting}>{null}</ActionPanel>}
    </>
  );
}

function Tier({ tier, name, acting }: { tier: StrangerTier; name: string; acting: Acting }) {
  const { stranger: text, release } = useLang().dict;
  const typed = inert(name, 253);
  const title = release.tiers[tier];
  if (tier === "forget" && !atLeast(acting.role, "admin")) return <NeedsAdmin title={title} />;
  return (
    <Panel id={`tier-${tier}`} title={release.tiers[tier]} kind={`tier ${tier}`}>
      <p class="inset-text">{text.about[tier]}</p>
      <ul class="fate">{text.fate[tier].map((line) => <li key={line}>{line}</li>)}</ul>
      <form
        method="post"
        action={`/actions/executors/${encodeURIComponent(name)}/release`}
        class="tier-form"
      >
        <Hidden acting={acting} name={tier} fields={[["tier", tier]]} />
        <Note name={tier} />
        {tier === "forget"
          ? (
            <label class="field grow">
              <span>{fill(release.confirm, { id: typed })}</span>
              <input
                name="confirm"
                class="mono"
                required
                autocomplete="off"
                spellcheck={false}
              />
            </label>
          )
          : null}
        <button type="submit" class="danger">{text.buttons[tier]}</button>
      </form>
    </Panel>
  );
}
