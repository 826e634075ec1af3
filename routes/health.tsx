import { HealthPage } from "../components/HealthPage.tsx";
import { definePage } from "../web/define.ts";

/** What proves that the program is well: self tests, versions, configuration. */
export default definePage({
  path: "/health",
  handler({ views }) {
    return Promise.resolve({
      kind: "found",
      data: { health: views.health(), config: views.config() },
    });
  },
  title: (_, { dict }) => dict.pages.health,
  component: HealthPage,
  island: "health",
  json: (data) => data,
});
