import { createProcessBackend } from "../backends/process/process_backend.ts";
import type { ProcessIdentity } from "../backends/process/process_identity.ts";
import type { Backend } from "../controller/backend.ts";
import type { Config } from "../controller/config/config.ts";
import type { BackendName } from "../controller/model/ids.ts";
import { type ExecutorImage, installExecutor } from "../embedded/executor_image.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { join } from "node:path";

/** Such jobs fail at their first `uses:`, and only their own log would say why. */
const SAMPLE_RUNNER = "the official runner is missing: the sample runner knows run: steps only; " +
  "put gitea-runner on PATH, or name it in CI_RUNNER_BIN";

/** User ids of process executors when we are root; outside of what systems give to people. */
const USER_IDS: Readonly<Record<BackendName, { first: number; count: number }>> = {
  pod: { first: 61_000, count: 1_000 },
  vm: { first: 62_000, count: 1_000 },
};

/**
 * Puts the executor's programs into `directory`, which takes seconds the first time; warns when jobs of
 * a real Gitea would meet the sample runner. Rejects with an `Error` that names CI_RUNNER_BIN where that
 * is no file, else the folder: it may be on another file system than STATE_DIR; or with the signal's reason.
 */
export async function installImage(deps: {
  readonly config: Config;
  readonly directory: string;
  readonly isRoot: boolean;
  readonly path: string;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}): Promise<ExecutorImage> {
  const { config, directory, isRoot, path, logger, signal } = deps;
  const { runnerBin } = config;
  if (runnerBin !== null && (await Deno.stat(runnerBin).catch(() => null))?.isFile !== true) {
    throw new Error(
      `Name the official runner in CI_RUNNER_BIN: "${runnerBin}" is not a file that can be read`,
    );
  }
  try {
    const image = await installExecutor({
      directory: join(directory, "executor"),
      root: isRoot,
      path,
      logger,
      signal,
      ...(runnerBin === null ? {} : { runnerBin }),
    });
    if (image.runner === "sample" && config.gitea.url !== null) logger.warn(SAMPLE_RUNNER);
    return image;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes("(os error ")) throw error;
    throw new Error(`Install the executor in "${directory}": ${error.message}`, { cause: error });
  }
}

/** Process executors for every enabled backend; pushed on `stack`, which ends their watching. */
export function createProcessBackends(
  names: readonly BackendName[],
  deps: {
    readonly image: ExecutorImage;
    readonly directory: string;
    readonly identity: ProcessIdentity;
    readonly isRoot: boolean;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly stack: AsyncDisposableStack;
  },
): Backend[] {
  const { image, directory, isRoot, logger, stack } = deps;
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
