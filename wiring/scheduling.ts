import type { LabelState } from "../controller/label_state.ts";
import type { Engine } from "../controller/engine.ts";
import type { guardPorts } from "../controller/leadership/guarded.ts";
import { unstartedSteps } from "../controller/model/steps.ts";
import { createScheduler, type Scheduler } from "../controller/scheduler.ts";
import { settleTask } from "../controller/settle.ts";
import type { StoreTaskDeps } from "../controller/store_task.ts";
import type { Facade } from "../facade/server.ts";
import type { Connections } from "./connections.ts";
import type { Surroundings } from "./controller.ts";

/** A stop of the embedded profile is over within 12 s. */
const EMBEDDED_GRACE_MS = 6_000;

/** The loops at Gitea, joined with the engine that has their tasks. */
export function makeScheduler(
  around: Surroundings & {
    readonly connections: Connections;
    readonly facade: Facade;
    readonly engine: Engine;
    readonly labels: LabelState;
    readonly ports: ReturnType<typeof guardPorts>;
  },
  options: { readonly capacity: number; readonly place: StoreTaskDeps["place"] },
): Scheduler {
  const { config, clock, logger, random, recorder, engine, labels, ports } = around;
  const { gitea, queue } = ports;
  return createScheduler({
    gitea,
    queue,
    place: options.place,
    settlePermanent: async ({ taskId, detail, steps: count }, stop) => {
      const text = `gitea-dynamic-runner: ${detail}`;
      const steps = unstartedSteps(count);
      await settleTask({ taskId, result: "failure", text, steps }, { gitea, clock }, stop);
    },
    onStored: engine.stored,
    labels: labels.labels,
    labelsChanged: labels.changed,
    // The engine has read them when it took over.
    flagsReady: () => Promise.resolve(),
    // Executors are told what Gitea can do as soon as Gitea has told us.
    onServerCapabilities: (value) => around.facade.setDeclared(value),
    recorder,
    logger,
    clock,
    random,
    watch: around.connections.giteaWatch,
  }, {
    capacity: options.capacity,
    version: around.version,
    capabilities: config.executorCapabilities,
    fetchMaxRps: config.gitea.fetchMaxRps,
    ...(config.profile === "embedded" ? { graceMs: EMBEDDED_GRACE_MS } : {}),
  });
}
