import { createPodBackend } from "../../backends/pod/pod_backend.ts";
import { NO_TEMPLATE, type PodTemplate } from "../../backends/pod/template.ts";
import type { Executor } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { specOf } from "../contract/backend_suite.ts";
import { createFakeCluster } from "../fakes/cluster.ts";
import { call } from "./calls.ts";
import { POD_IDENTITY, POD_SETTINGS } from "./pod_settings.ts";

/** Of labels and annotations. */
export const PREFIX = POD_IDENTITY.prefix;
/** Whose executors they are. */
export const INSTANCE = POD_IDENTITY.instance;
/** What the tests have made. */
export const SPEC = specOf("1", "pod");

/** A Pod backend on a cluster in memory, with what it has logged. */
export function setupPodBackend(
  options: {
    readonly agentId?: string;
    readonly template?: PodTemplate;
    readonly fenced?: () => boolean;
  } = {},
) {
  const clock = createFakeClock();
  const cluster = createFakeCluster({ clock });
  const said: { message: string; fields: unknown }[] = [];
  const say = (message: string, fields: unknown) => void said.push({ message, fields });
  const logger = { ...silentLogger, info: say, warn: say, child: () => logger };
  const backend = createPodBackend({
    cluster,
    pods: { ...POD_SETTINGS, template: options.template ?? NO_TEMPLATE },
    identity: { ...POD_IDENTITY, agentId: options.agentId ?? "spiffe://example.org/node/test" },
    clock,
    logger,
    guard() {
      if (options.fenced?.()) throw new Error("not the leader");
    },
  });
  return {
    clock,
    cluster,
    backend,
    said,
    messages: () => said.map(({ message }) => message),
    entry: () => cluster.entries.get(SPEC.name),
    async bound(): Promise<Executor> {
      const made = await backend.create(SPEC, call);
      await backend.bindIdentity(made, SPEC.assignment, call);
      return made;
    },
  };
}
