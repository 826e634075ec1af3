import { LeaderPage } from "../components/LeaderPage.tsx";
import { definePage } from "../web/define.ts";

/** Who leads: fields of the Lease, epoch, replicas. */
export default definePage({
  path: "/leader",
  handler({ views, now, lastEventId }) {
    const data = {
      at: new Date(now).toISOString(),
      lastEventId: lastEventId(),
      leader: views.leader(),
    };
    return Promise.resolve({ kind: "found", data });
  },
  title: (_, { dict }) => dict.pages.leader,
  component: LeaderPage,
  island: "leader",
  json: (data) => data,
});
