import { taskIdOf } from "../controller/model/ids.ts";
import type { AssignmentView, BackendView } from "../controller/views/views.ts";
import { hrefOf } from "./board.ts";
import { inert } from "./inert.ts";
import { coarse, fill, number, useLang } from "./lang.ts";
import { useNow } from "./now.ts";
import { Age, Glyph, Outside, toneOf } from "./Small.tsx";

/** Up to this many slots a block has room for words; above it is a small square. */
const TILES = 12;
/** Blocks drawn at most. */
const MAX_BLOCKS = 600;

type Slot = BackendView["slots"][number];

/** One block per slot: taken ones link to their job, free ones are hollow, unknown ones are hatched. */
export function Slots(
  { backend, jobs }: { backend: BackendView; jobs: ReadonlyMap<string, AssignmentView> },
) {
  const lang = useLang();
  const { backends: text } = lang.dict;
  const known = backend.slots.slice(0, MAX_BLOCKS);
  const free = Math.min(backend.free, MAX_BLOCKS - known.length);
  const tiles = backend.capacity <= TILES && known.length <= TILES;
  const hidden = backend.slots.length + backend.free - known.length - free;
  return (
    <ul
      class={tiles ? "slots tiles" : "slots dots"}
      aria-label={fill(text.slots, { name: backend.name })}
    >
      {known.map((slot, index) => (
        <li key={slot.assignmentId} class={index === backend.capacity ? "over" : ""}>
          <Taken slot={slot} job={jobs.get(slot.assignmentId)} tile={tiles} />
        </li>
      ))}
      {several(Math.min(backend.unknown, 50), (index) => (
        <li key={`unknown${index}`}>
          <span class="slot unknown" title={text.unknownSlot}>
            {tiles ? text.unknown : <span aria-hidden="true">?</span>}
            <span class="sr">{tiles ? "" : text.unknownSlot}</span>
          </span>
        </li>
      ))}
      {several(free, (index) => (
        <li key={`free${index}`}>
          <span class="slot free" title={text.free}>
            {tiles ? text.free : <span class="sr">{text.free}</span>}
          </span>
        </li>
      ))}
      {several(
        Math.min(backend.parked, 50),
        (index) => (
          <li key={`parked${index}`} class={index === 0 ? "apart" : ""}>
            <a
              class="slot parked"
              href={hrefOf({ backend: backend.name, state: "parked" })}
              title={text.parkedJob}
            >
              <Glyph state="parked" />
              <span class={tiles ? "" : "sr"}>{text.parkedJob}</span>
            </a>
          </li>
        ),
      )}
      {hidden > 0 ? <li class="mute">{fill(text.more, { n: number(lang, hidden) })}</li> : null}
    </ul>
  );
}

function Taken(
  { slot, job, tile }: { slot: Slot; job: AssignmentView | undefined; tile: boolean },
) {
  const lang = useLang();
  const now = useNow();
  const name = job === undefined
    ? slot.assignmentId
    : `${inert(job.repository, 100)} ${inert(job.job, 100)}`;
  const state = lang.dict.states[slot.state];
  const age = coarse(lang, now - Date.parse(slot.since));
  return (
    <a
      class={`slot ${toneOf(slot.state)}`}
      href={`/assignments/${slot.assignmentId}`}
      title={`${name} · ${state} · ${age}`}
    >
      <Glyph state={slot.state} />
      {tile
        ? (
          <>
            <span class="slot-name clip">
              {job === undefined
                ? `#${taskIdOf(slot.assignmentId) ?? ""}`
                : <Outside text={job.job} max={60} />}
            </span>
            <span class="slot-state clip">
              {state} <Age at={slot.since} />
            </span>
          </>
        )
        : <span class="sr">{`${name}, ${state}`}</span>}
    </a>
  );
}

function several<T>(n: number, make: (index: number) => T): T[] {
  return Array.from({ length: Math.max(0, n) }, (_, index) => make(index));
}
