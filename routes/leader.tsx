import { LeaderPage } from "../components/LeaderPage.tsx";
import { actingOn } from "../web/actions/acting_on.ts";
import { definePage } from "../web/define.ts";

/** Who leads: fields of the Lease, epoch, replicas. */
export default definePage({
  path: "/leader",
  handler(context) {
    const { views } = context;
    const data = {
      leader: views.leader(),
      running: views.backends().reduce((sum, { running }) => sum + running, 0),
      acting: actingOn(context, "leader"),
    };
    return Promise.resolve({ kind: "found", data });
  },
  title: (_, { dict }) => dict.pages.leader,
  component: LeaderPage,
  island: "leader",
  json: (data) => data,
});
