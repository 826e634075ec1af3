import type { FunctionComponent } from "preact";
import type { Dated } from "../components/dated.ts";
import type { LivePage } from "./mount.tsx";

/**
 * A page that is read from the server anew for each of `events`, and with the `status` that comes every
 * 5 s, for what has no event of its own. With `idleMs` the status has it read no more often than that
 * while nothing happens: once after an event, because what that tells of may be stored a moment later,
 * and then when the page is so old.
 */
export function refetching<D extends Dated>(
  component: FunctionComponent<{ data: D }>,
  events: readonly string[],
  { idleMs = 0 }: { readonly idleMs?: number } = {},
): LivePage<D> {
  let once = false;
  return {
    component,
    // The stream counts as lost when it hears nothing for 20 s: every page listens to the status.
    events: [...events, "status"],
    apply(data, messages) {
      const happened = messages.some(({ event }) => events.includes(event));
      const ageMs = Date.parse(messages.at(-1)?.at ?? "") - Date.parse(data.at);
      const wanted = happened || once || ageMs >= idleMs;
      if (wanted) once = happened;
      return wanted ? "refetch" : data;
    },
  };
}
