import { join } from "node:path";
import { createSpireEntries } from "../clients/spire/entries.ts";
import type { Config } from "../controller/config/config.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { lockStateDirectory, openStateDirectory } from "../embedded/state_directory.ts";
import { startTrustDomain } from "../embedded/trust_domain.ts";
import { enabledBackends } from "./controller.ts";
import type { ExecutorParts, MakeExecutors, ServerParts } from "./parts.ts";
import { createProcessBackends, installImage } from "./process_backends.ts";
import type { ProgramContext } from "./program.ts";
import { leaveRuntimeDirectory, runtimeDirectory } from "./runtime_directory.ts";
import { inState } from "./supplies.ts";

/**
 * Process executors (`EXECUTORS=process`): puts their programs into a folder that they can reach, below
 * `STATE_DIR` or beside it; identities come from SPIRE where it is configured, else from a development
 * trust domain.
 */
export async function prepareProcesses(
  config: Config,
  context: ProgramContext & {
    readonly stack: AsyncDisposableStack;
    readonly facadeSpiffeId: string;
  },
  signal: AbortSignal,
): Promise<MakeExecutors> {
  const { clock, logger, stack, isRoot } = context;
  if (config.profile === "production") {
    // Executors' folders are in it. In the embedded profile it is locked already.
    const directory = await inState(config, openStateDirectory(config.stateDir));
    stack.use(await inState(config, lockStateDirectory(directory)));
  }
  const directory = await runtimeDirectory(config.stateDir, { otherUsers: isRoot });
  const names = enabledBackends(config);
  stack.defer(() => leaveRuntimeDirectory(directory, { otherUsers: isRoot, backends: names }));
  const path = context.env["PATH"] ?? "";
  const image = await installImage({ config, directory, isRoot, path, logger, signal });
  return async (gitea): Promise<ExecutorParts> => {
    const { identity, endpointSocket } = await identities(config, { ...context, directory }, gitea);
    const deps = { image, directory, identity, isRoot, clock, logger, stack };
    const backends = createProcessBackends(names, deps);
    return { backends: () => Promise.resolve(backends), endpointSocket };
  };
}

/** Who gives process executors, and the facade, their identity. */
async function identities(
  config: Config,
  context: ProgramContext & {
    readonly stack: AsyncDisposableStack;
    readonly facadeSpiffeId: string;
    readonly directory: string;
  },
  gitea: ServerParts["gitea"],
) {
  const { clock, logger, stack, directory } = context;
  const { trustDomain, endpointSocket, spireServerSocket, spireParentId } = config.spiffe;
  if (endpointSocket !== null && spireServerSocket !== null) {
    const instance = await instanceOf(gitea.uuid, config.namespace);
    const identity = stack.use(createSpireEntries({
      adminSocket: spireServerSocket,
      endpoint: endpointSocket,
      parentId: spireParentId ?? "",
      instancePrefix: `gdr-${instance}`,
    }));
    return { identity, endpointSocket };
  }
  const identity = stack.use(
    await inState(
      config,
      startTrustDomain({
        directory: join(config.stateDir, "trust"),
        trustDomain,
        clock,
        logger,
        temporaryDirectory: directory,
      }),
    ),
  );
  return { identity, endpointSocket: await identity.endpointFor(context.facadeSpiffeId) };
}
