import { AssignmentPage } from "../../components/AssignmentPage.tsx";
import { inert } from "../../components/inert.ts";
import { parseAssignmentId } from "../../controller/model/ids.ts";
import { actingOn } from "../../web/actions/acting_on.ts";
import { absentAssignment } from "../../web/absent.ts";
import { whenAway } from "../../web/away.ts";
import { definePage } from "../../web/define.ts";

/** One job, from Gitea's hand-out to clean-up. */
export default definePage({
  path: "/assignments/:id",
  async handler(context) {
    const { views, param } = context;
    const id = parseAssignmentId(param("id"));
    const assignment = id === undefined ? undefined : await views.assignment(id);
    if (assignment === undefined) return absentAssignment(param("id"));
    // Without them the page still says how the job is.
    const operations = await views.operations({ limit: 20, cursor: null, target: assignment.id })
      .catch(whenAway({ items: [] }));
    return {
      kind: "found",
      data: {
        assignment,
        operations: operations.items,
        acting: actingOn(context, assignment.id),
      },
    };
  },
  title: ({ assignment: { repository, job, state } }, { dict }) =>
    `${inert(repository, 100)} › ${inert(job, 100)} · ${dict.states[state]}`,
  component: AssignmentPage,
  island: "assignment",
  json: (data) => data,
});
