import { createProcessBackend } from "../backends/process/process_backend.ts";
import type { ProcessIdentity } from "../backends/process/process_identity.ts";
import type { Backend } from "../controller/backend.ts";
import type { Config } from "../controller/config/config.ts";
import type { BackendName } from "../controller/model/ids.ts";
import { installExecutor } from "../embedded/executor_image.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { join } from "node:path";

/** User ids of process executors when we are root; outside of what systems give to people. */
const USER_IDS: Readonly<Record<BackendName, { first: number; count: number }>> = {
  pod: { first: 61_000, count: 1_000 },
  vm: { first: 62_000, count: 1_000 },
};

/** Process executors for every enabled backend; pushed on `stack`, which ends their watching. */
export async function createProcessBackends(
  names: readonly BackendName[],
  deps: {
    readonly config: Config;
    readonly directory: string;
    readonly identity: ProcessIdentity;
    readonly isRoot: boolean;
    readonly path: string;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly stack: AsyncDisposableStack;
  },
): Promise<Backend[]> {
  const { config, directory, isRoot, logger, stack } = deps;
  const image = await installExecutor({
    directory: join(directory, "executor"),
    root: isRoot,
    path: deps.path,
    logger,
    ...(config.runnerBin === null ? {} : { runnerBin: config.runnerBin }),
  });
  logger.info("executors are child processes", {
    component: "worker",
    runner: image.runner,
    ownUsers: isRoot,
  });
  return names.map((name) =>
    stack.use(createProcessBackend({
      name,
      directory: join(directory, name),
      command: image.command,
      environment: image.environment,
      identity: deps.identity,
      userIds: isRoot ? USER_IDS[name] : null,
      clock: deps.clock,
      logger,
    }))
  );
}
