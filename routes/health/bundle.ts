import { BACKENDS } from "../../controller/model/ids.ts";
import { defineRaw } from "../../web/define.ts";
import { jsonFile } from "../../web/download.ts";

const FIRST = { limit: 500, cursor: null };

/** Everything that the pages know, as one file for a report. What cannot be read is null, and named. */
export default defineRaw({
  path: "/health/bundle",
  async respond(context) {
    const { views } = context;
    const missing: string[] = [];
    const may = async <T>(name: string, read: () => Promise<T>): Promise<T | null> => {
      try {
        return await read();
      } catch {
        missing.push(name);
        return null;
      }
    };
    const bundle = {
      at: new Date(context.now).toISOString(),
      status: views.status(),
      readiness: context.readiness(),
      health: views.health(),
      config: views.config(),
      canary: views.canary(),
      hours: BACKENDS.flatMap((name) => views.hour(name) ?? []),
      executors: await may("executors", () => views.executors(FIRST)),
      assignments: await may("assignments", () => views.assignments(FIRST)),
      history: await may("history", () => views.history(FIRST)),
      operations: await may("operations", () => views.operations(FIRST)),
      audit: await may("audit", () => views.audit(FIRST)),
      metrics: await may("metrics", context.metricsText),
    };
    return jsonFile("gitea-dynamic-runner", { ...bundle, missing }, context);
  },
});
