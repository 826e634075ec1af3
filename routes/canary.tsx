import { CanaryPage } from "../components/CanaryPage.tsx";
import { definePage } from "../web/define.ts";

/** The label of the vm backend, and how both labels do beside each other. */
export default definePage({
  path: "/canary",
  handler({ views, now, lastEventId }) {
    const data = {
      at: new Date(now).toISOString(),
      lastEventId: lastEventId(),
      canary: views.canary(),
    };
    return Promise.resolve({ kind: "found", data });
  },
  title: ({ canary }, { dict }) => `${dict.pages.canary} · ${canary.declared ?? dict.none}`,
  component: CanaryPage,
  island: "canary",
  json: (data) => data,
});
