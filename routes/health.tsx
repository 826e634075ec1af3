import { HealthPage } from "../components/HealthPage.tsx";
import { definePage } from "../web/define.ts";

/** What proves that the program is well: self tests, versions, configuration. */
export default definePage({
  path: "/health",
  handler({ views, now, lastEventId }) {
    const data = {
      at: new Date(now).toISOString(),
      lastEventId: lastEventId(),
      health: views.health(),
      config: views.config(),
    };
    return Promise.resolve({ kind: "found", data });
  },
  title: (_, { dict }) => dict.pages.health,
  component: HealthPage,
  island: "health",
  json: (data) => data,
});
