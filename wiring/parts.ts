import { join } from "node:path";
import type { ProcessIdentity } from "../backends/process/process_identity.ts";
import { createSpireEntries } from "../clients/spire/entries.ts";
import type { Config } from "../controller/config/config.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { stateFailure } from "../embedded/state_directory.ts";
import { startTrustDomain } from "../embedded/trust_domain.ts";
import { allOrNone } from "../lib/all_or_none.ts";
import { enabledBackends, type Parts } from "./controller.ts";
import { createProcessBackends, installImage } from "./process_backends.ts";
import type { ProgramContext } from "./program.ts";
import { leaveRuntimeDirectory, runtimeDirectory } from "./runtime_directory.ts";
import { createSupplies } from "./supplies.ts";

/**
 * Everything the controller needs: what is configured as configured, and in the embedded profile the
 * rest on this machine. What was started is pushed on `stack`.
 */
export async function supplyParts(
  config: Config,
  context: ProgramContext & { readonly stack: AsyncDisposableStack },
  signal: AbortSignal,
): Promise<Parts> {
  const { clock, logger, stack, isRoot } = context;
  const inState = <T>(work: Promise<T>) =>
    work.catch((error) => {
      throw stateFailure(config.stateDir, error);
    });
  const supplies = await inState(createSupplies(config, context));
  const directory = await runtimeDirectory(config.stateDir, { otherUsers: isRoot });
  const backendNames = enabledBackends(config);
  stack.defer(() =>
    leaveRuntimeDirectory(directory, { otherUsers: isRoot, backends: backendNames })
  );
  const { trustDomain } = config.spiffe;
  const facadeSpiffeId = config.facade.spiffeId ??
    `spiffe://${trustDomain}/gitea-dynamic-runner/facade`;
  const path = context.env["PATH"] ?? "";
  const [[nats, gitea], image] = await allOrNone([
    (stop) => inState(allOrNone([supplies.nats, supplies.gitea], stop)),
    () => installImage({ config, directory, isRoot, path, logger }),
  ], signal);

  const { endpointSocket: endpoint, spireServerSocket: adminSocket } = config.spiffe;
  let identity: ProcessIdentity;
  let endpointSocket: string;
  if (endpoint !== null && adminSocket !== null) {
    const instance = await instanceOf(gitea.uuid, config.namespace);
    const parentId = config.spiffe.spireParentId ?? "";
    const options = { adminSocket, endpoint, parentId, instancePrefix: `gdr-${instance}` };
    identity = stack.use(createSpireEntries(options));
    endpointSocket = endpoint;
  } else {
    const domain = stack.use(
      await inState(startTrustDomain({
        directory: join(config.stateDir, "trust"),
        trustDomain,
        clock,
        logger,
        temporaryDirectory: directory,
      })),
    );
    identity = domain;
    endpointSocket = await domain.endpointFor(facadeSpiffeId);
  }
  const backends = createProcessBackends(backendNames, {
    image,
    directory,
    identity,
    isRoot,
    clock,
    logger,
    stack,
  });
  return {
    gitea,
    nats,
    capabilityKeys: await inState(supplies.capabilityKeys()),
    place: await inState(supplies.place()),
    trustDomain,
    endpointSocket,
    facade: {
      hostname: config.facade.listen.hostname,
      port: await supplies.facadePort(),
      url: config.facade.url,
      spiffeId: facadeSpiffeId,
    },
    backends,
  };
}
