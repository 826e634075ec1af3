import { inert } from "../../../components/inert.ts";
import { ReleasePage } from "../../../components/ReleasePage.tsx";
import { readRelease } from "../../../web/actions/acting_on.ts";
import { definePage } from "../../../web/define.ts";

/** What this would do, to which job; nothing happens before a button is pressed. */
export default definePage({
  path: "/assignments/:id/cancel",
  handler: (context) => readRelease(context, "cancel"),
  title: ({ previews: [first] }, { dict }) =>
    `${dict.operation.actions["cancel"]} › ${inert(first?.assignment.job ?? "", 100)}`,
  component: ReleasePage,
  // It must not change under the hand: the tag tells when the job has.
  island: null,
  json: (data) => data,
});
