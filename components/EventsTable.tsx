import type { EventView } from "../controller/views/views.ts";
import { duration, fill, useLang } from "./lang.ts";
import { At, Outside } from "./Small.tsx";

/** Every event of an assignment by its exact name, oldest first. */
export function EventsTable({ id, events }: { id: string; events: readonly EventView[] }) {
  const lang = useLang();
  const { assignment: text, groups } = lang.dict;
  const columns = [
    "#",
    text.at,
    text.event,
    text.untilNext,
    text.component,
    text.phase,
    text.executor,
    text.retry,
    text.detail,
  ];
  const blank = <span class="mute">–</span>;
  return (
    <section class="panel list" aria-labelledby="events">
      <header>
        <h2 id="events">{text.events}</h2>
        <span class="count num">{events.length}</span>
        <a class="push" href={`/history?assignment=${id}`}>{text.inHistory}</a>
      </header>
      {events.length === 0 ? <p class="empty">{text.noEvents}</p> : (
        <div
          class="scroll"
          tabIndex={0}
          role="group"
          aria-label={fill(groups.scroll, { name: text.events })}
        >
          <table class="events">
            <thead>
              <tr>{columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr>
            </thead>
            <tbody>
              {events.map((event, index) => (
                <tr key={event.seq ?? `${event.at}${index}`}>
                  <td class="num mute">{event.seq ?? "–"}</td>
                  <td>
                    <At at={event.at} millis />
                  </td>
                  <th scope="row" class="mono">
                    <Outside text={event.event} max={100} />
                  </th>
                  <td class="num right">
                    {event.durationMs === null ? blank : duration(lang, event.durationMs)}
                  </td>
                  <td>
                    <Outside text={event.component} max={100} />
                  </td>
                  <td>
                    {event.phase === null ? blank : <Outside text={event.phase} max={100} />}
                  </td>
                  <td class="mono">
                    {event.executor === null ? blank : <Outside text={event.executor} max={200} />}
                  </td>
                  <td class="num right">
                    {event.retryDelayMs === 0 ? blank : duration(lang, event.retryDelayMs)}
                  </td>
                  <td class="detail">
                    {event.detail === null ? blank : <Outside text={event.detail} max={500} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
