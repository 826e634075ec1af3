import { plainForm } from "../../web/actions/bodies.ts";
import { defineAction } from "../../web/define.ts";
import { noInput } from "../../web/query.ts";

/** The button of the page Health: nothing changes but what that page says. */
export default defineAction({
  path: "/health/run",
  summary: "Run the self tests again",
  params: noInput,
  body: plainForm,
  named: null,
  page: () => "/health",
  async act({ views, signal }) {
    await views.recheck(signal);
    return { kind: "seen" };
  },
});
