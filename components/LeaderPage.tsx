import type { LeaderView } from "../controller/views/views.ts";
import { ActionPanel, Step } from "./ActionForms.tsx";
import type { Acting } from "./acting.ts";
import type { Dated } from "./dated.ts";
import { fill, number, plural, useLang } from "./lang.ts";
import { Fact, Maybe, PageHead, Panel, Scroller, Table } from "./Parts.tsx";
import { Age, At, Outside } from "./Small.tsx";

/** What the page shows. */
export interface LeaderData extends Dated {
  readonly leader: LeaderView;
  /** Jobs at work now. */
  readonly running: number;
  readonly acting: Acting;
}

/** Who leads: the Lease's fields and the replicas. */
export function LeaderPage({ data }: { data: LeaderData }) {
  const lang = useLang();
  const { lease: text, leader: words, pages, unknown, columns } = lang.dict;
  const { leader } = data;
  const [tone, word] = leader.leading
    ? ["good", words.leading]
    : leader.holder === null
    ? ["bad", words.vacant]
    : ["start", words.standby];
  const count = (n: number | null) =>
    n === null ? <span class="mute">{unknown}</span> : <span class="num">{number(lang, n)}</span>;
  const time = (at: string | null) =>
    at === null ? <span class="mute">{unknown}</span> : (
      <>
        <At at={at} />{" "}
        <span class="mute small">
          <Age at={at} ago />
        </span>
      </>
    );
  return (
    <>
      <PageHead title={pages.leader}>
        <span class={`mark ${tone}`}>{word}</span>
      </PageHead>
      <Panel id="lease" title={text.title}>
        <dl class="facts">
          <Fact name={text.holder} wide>
            <span class="mono wrap">
              {leader.holder === null
                ? <span class="mute">{words.vacant}</span>
                : <Outside text={leader.holder} max={300} />}
            </span>
          </Fact>
          <Fact name={text.self} wide>
            <span class="mono wrap">
              <Outside text={leader.self} max={300} />
            </span>
          </Fact>
          <Fact name={text.mode}>{text.modes[leader.mode]}</Fact>
          <Fact name={text.epoch}>{count(leader.epoch)}</Fact>
          <Fact name={text.transitions}>{count(leader.transitions)}</Fact>
          <Fact name={text.duration}>
            {leader.leaseSeconds === null
              ? <span class="mute">{unknown}</span>
              : <span class="num">{fill(text.seconds, { n: leader.leaseSeconds })}</span>}
          </Fact>
          <Fact name={text.acquired}>{time(leader.acquiredAt)}</Fact>
          <Fact name={text.renewed}>{time(leader.renewedAt)}</Fact>
        </dl>
      </Panel>
      <Panel
        id="replicas"
        title={text.replicas}
        aside={<span class="count num">{leader.replicas.length}</span>}
        kind="list"
      >
        <Scroller name={text.replicas}>
          <Table
            columns={[
              ["name", text.name],
              ["role", text.role],
              ["ready", text.ready],
              ["seen", text.seen],
            ]}
          >
            {leader.replicas.map((replica) => (
              <tr key={replica.name}>
                <td class="head mono strong">
                  <Maybe text={replica.name} max={200} />
                </td>
                <td data-label={text.role}>
                  <span class={`mark ${replica.leading ? "good" : "start"}`}>
                    {replica.leading ? text.leads : text.stands}
                  </span>
                </td>
                <td data-label={text.ready}>
                  {replica.ready === null
                    ? <span class="mute">{unknown}</span>
                    : replica.ready
                    ? text.yes
                    : <span class="bad">{text.no}</span>}
                </td>
                <td class="num" data-label={columns.since}>
                  {replica.seenAt === null
                    ? <span class="mute">{unknown}</span>
                    : <Age at={replica.seenAt} ago />}
                </td>
              </tr>
            ))}
          </Table>
        </Scroller>
      </Panel>
      <StepDown data={data} />
    </>
  );
}

function StepDown({ data }: { data: LeaderData }) {
  const lang = useLang();
  const { acting: text } = lang.dict;
  const { leader, running, acting } = data;
  return (
    <ActionPanel acting={acting}>
      {leader.mode === "none" ? <p class="mute">{text.noElection}</p> : (
        <Step
          name="step-down"
          needs="admin"
          path="/actions/leader/step-down"
          title={text.stepDown}
          about={`${text.stepDownText} ${plural(lang, text.stepDownRunning, running)}`}
          acting={acting}
        />
      )}
    </ActionPanel>
  );
}
