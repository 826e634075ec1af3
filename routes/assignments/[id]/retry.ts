import { defineAction } from "../../../web/define.ts";
import { assignmentParams, noteForm } from "../../../web/query.ts";

/** The button of the job's page. */
export default defineAction({
  path: "/assignments/:id/retry",
  summary: "Try a parked assignment now",
  params: assignmentParams,
  body: noteForm,
  page: ({ id }) => `/assignments/${id}`,
  act: ({ actions, requestId, signal }, { params: { id }, body: { note } }) =>
    actions.retry(id, { by: "local", note, requestId }, { signal }),
});
