import { defineAction } from "../../../../../web/define.ts";
import { assignmentParams, noteBody } from "../../../../../web/query.ts";

/** Tries a parked assignment now. */
export default defineAction({
  path: "/api/v1/assignments/:id/retry",
  summary: "Try a parked assignment now",
  params: assignmentParams,
  body: noteBody,
  page: null,
  act: ({ actions, requestId, signal }, { params: { id }, body: { note } }) =>
    actions.retry(id, { by: "local", note, requestId }, { signal }),
});
