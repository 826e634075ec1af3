import { Backends } from "./Backends.tsx";
import { type Board, type GroupName, onlyGroup } from "./board.ts";
import { FilterBar } from "./FilterBar.tsx";
import { Ended, Running, Waiting } from "./JobTables.tsx";
import { useLang } from "./lang.ts";
import { useNow } from "./now.ts";
import { Age, Until } from "./Small.tsx";
import { StatusNotices, StatusStrip } from "./StatusStrip.tsx";

/** The page Now: what is there, what waits and why, what runs, what has just ended. */
export function NowPage({ data: board }: { data: Board }) {
  const { dict } = useLang();
  const only = onlyGroup(board.filters);
  const shows = (name: GroupName) => only === null || only === name;
  return (
    <>
      <h1 class="sr">{dict.nav.now}</h1>
      <StatusNotices status={board.status} />
      <StatusStrip status={board.status} at={board.statusAt} />
      <Backends board={board} />
      <FilterBar board={board} />
      {shows("waiting") ? <Waiting board={board} empty={<NothingWaits board={board} />} /> : null}
      {shows("running") ? <Running board={board} /> : null}
      {shows("ended") ? <Ended board={board} /> : null}
    </>
  );
}

/** Empty is normal: says so, and when it looks next. */
function NothingWaits({ board }: { board: Board }) {
  const { empty } = useLang().dict;
  const { nextFetchAt, sources } = board.status;
  const now = useNow();
  const [before = "", after = ""] = empty.last.split("{t}");
  return (
    <>
      <p>
        <strong>{empty.title}</strong> {empty.text}
      </p>
      <p class="mute">
        {nextFetchAt !== null && nextFetchAt !== undefined
          ? Date.parse(nextFetchAt) <= now
            ? empty.asking
            : <Until at={nextFetchAt} text={empty.next} />
          : sources.gitea.ageMs === null
          ? empty.silent
          : (
            <>
              {before}
              <Age at={new Date(Date.parse(board.statusAt) - sources.gitea.ageMs).toISOString()} />
              {after}
            </>
          )}
      </p>
    </>
  );
}
