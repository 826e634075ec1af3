import { CanaryPage } from "../components/CanaryPage.tsx";
import { actingOn } from "../web/actions/acting_on.ts";
import { definePage } from "../web/define.ts";

/** The label of the vm backend, and how both labels do beside each other. */
export default definePage({
  path: "/canary",
  handler(context) {
    const data = { canary: context.views.canary(), acting: actingOn(context, "vm") };
    return Promise.resolve({ kind: "found", data });
  },
  title: ({ canary }, { dict }) => `${dict.pages.canary} · ${canary.declared ?? dict.none}`,
  component: CanaryPage,
  island: "canary",
  json: (data) => data,
});
