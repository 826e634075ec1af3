import { AssignmentPage } from "../../components/AssignmentPage.tsx";
import { inert } from "../../components/inert.ts";
import { parseAssignmentId } from "../../controller/model/ids.ts";
import { definePage } from "../../web/define.ts";

/** One job, from Gitea's hand-out to clean-up. */
export default definePage({
  path: "/assignments/:id",
  async handler({ views, now, param, lastEventId: newest }) {
    const id = parseAssignmentId(param("id"));
    const lastEventId = newest();
    const assignment = id === undefined ? undefined : await views.assignment(id);
    if (assignment === undefined) {
      return {
        kind: "absent",
        detail: `Look for another assignment: "${param("id")}" is not known (any more)`,
      };
    }
    return {
      kind: "found",
      data: { at: new Date(now).toISOString(), lastEventId, assignment },
    };
  },
  title: ({ assignment: { repository, job, state } }, { dict }) =>
    `${inert(repository, 100)} › ${inert(job, 100)} · ${dict.states[state]}`,
  component: AssignmentPage,
  island: "assignment",
  json: (data) => data,
});
