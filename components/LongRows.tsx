import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { AssignmentView } from "../controller/views/views.ts";
import type { Group, GroupName } from "./board.ts";
import { fill, useLang } from "./lang.ts";

/** Reads a list on until it has `until` rows; null where no script runs: then there are pages. */
export const LongListContext = createContext<((name: GroupName, until: number) => void) | null>(
  null,
);

/** Rows drawn above and below what is seen, so that keys and fast scrolling find some. */
const OVERSCAN = 12;
const NEAR = 60;

/**
 * The rows of a list. A list that goes on behind its first page scrolls by itself, and only the rows
 * that are seen are drawn: ten thousand cost as much as fifty. All rows then have the same height, which
 * the style sheet knows (`--row`).
 */
export function LongRows(
  { name, group, long, columns, head, row }: {
    name: GroupName;
    group: Group;
    /** It goes on behind the rows that the page came with. */
    long: boolean;
    columns: number;
    head: ComponentChildren;
    row: (job: AssignmentView, place: { readonly "aria-rowindex"?: number }) => ComponentChildren;
  },
) {
  const { dict } = useLang();
  const scrolls = useScrolls();
  if (!long || !scrolls) {
    return (
      <table class={`jobs ${name}`}>
        {head}
        <tbody>{group.items.map((job) => row(job, {}))}</tbody>
      </table>
    );
  }
  const label = fill(dict.groups.scroll, { name: dict.groups[name] });
  return <Window name={name} group={group} columns={columns} head={head} row={row} label={label} />;
}

/** Whether long lists scroll by themselves here; the first drawing must equal the server's. */
export function useScrolls(): boolean {
  const more = useContext(LongListContext);
  const [mounted, setMounted] = useState(false);
  useEffect(() => setMounted(true), []);
  return more !== null && mounted;
}

function Window(
  { name, group, columns, head, row, label }: {
    name: GroupName;
    group: Group;
    columns: number;
    head: ComponentChildren;
    row: (job: AssignmentView, place: { readonly "aria-rowindex"?: number }) => ComponentChildren;
    label: string;
  },
) {
  const { dict } = useLang();
  const more = useContext(LongListContext);
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 700, rowHeight: 54 });
  const look = () => {
    const element = box.current;
    if (element === null) return;
    const rowHeight = parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 54;
    setSeen({ top: element.scrollTop, height: element.clientHeight, rowHeight });
  };
  useLayoutEffect(() => {
    look();
    const stop = new AbortController();
    addEventListener("resize", look, { signal: stop.signal });
    return () => stop.abort();
  }, []);

  const { items, total } = group;
  const { top, height, rowHeight } = seen;
  const first = Math.max(0, Math.min(total - 1, Math.floor(top / rowHeight) - OVERSCAN));
  const end = Math.min(total, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  useEffect(() => {
    if (items.length < total && end + NEAR > items.length) more?.(name, end + NEAR);
  }, [end, items.length, total]);

  return (
    <div
      class="virtual"
      ref={box}
      tabIndex={0}
      role="group"
      aria-label={label}
      onScroll={look}
    >
      <table class={`jobs ${name}`} aria-rowcount={total + 1}>
        {head}
        <tbody>
          <Space rows={first} rowHeight={rowHeight} />
          {Array.from({ length: end - first }, (_, i) => {
            const index = first + i;
            const job = items[index];
            return job !== undefined
              ? row(job, { "aria-rowindex": index + 2 })
              : (
                <tr key={`blank${index}`} class="blank" aria-rowindex={index + 2}>
                  <td colSpan={columns} class="mute">{dict.groups.loading}</td>
                </tr>
              );
          })}
          <Space rows={total - end} rowHeight={rowHeight} />
        </tbody>
      </table>
    </div>
  );
}

/** Room for rows that are not drawn. Set by script: the policy allows no style in the page itself. */
function Space({ rows, rowHeight }: { rows: number; rowHeight: number }) {
  const cell = useRef<HTMLTableCellElement>(null);
  useLayoutEffect(() => {
    if (cell.current !== null) cell.current.style.height = `${rows * rowHeight}px`;
  }, [rows, rowHeight]);
  return rows <= 0 ? null : (
    <tr class="space" aria-hidden="true">
      <td ref={cell} />
    </tr>
  );
}
