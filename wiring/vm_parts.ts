import { createVmBackend } from "../backends/vm/vm_backend.ts";
import { createLifecycle } from "../clients/opensandbox/lifecycle.ts";
import type { Config } from "../controller/config/config.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { Secret } from "../lib/secret.ts";
import type { PartsContext, SandboxParts } from "./parts.ts";

/**
 * What OpenSandbox gives: microVMs as executors. Speaks with nobody yet; a server that is away is waited
 * for later. Throws a `TypeError` without address or key, which parsing has refused.
 */
export function openSandboxes(config: Config, context: PartsContext): SandboxParts {
  const { api: url, apiKey, apiKeyFile, pool, timeoutMs } = config.vm;
  const { endpointSocket } = config.spiffe;
  const { clock, logger, stack, sources } = context;
  if (url === null || apiKey === null || endpointSocket === null) {
    throw new TypeError(
      "Make sandboxes: OPENSANDBOX_API, OPENSANDBOX_API_KEY and SPIFFE_ENDPOINT_SOCKET are required",
    );
  }
  // The client is made before anybody leads, the leader's guard with the lead: until then no change passes.
  let leaderGuard = (): void => {
    throw new Error("Make sandboxes: this process does not lead yet");
  };
  const api = stack.use(createLifecycle({
    url,
    apiKey,
    ...apiKeyFile === null ? {} : {
      readKey: async () => new Secret((await Deno.readTextFile(apiKeyFile)).trim()),
    },
    clock,
    before: () => leaderGuard(),
  }));
  sources.opensandbox = () => api.status();
  return {
    async vmBackend(gitea, guard, records) {
      leaderGuard = guard;
      return createVmBackend({
        api,
        pool,
        timeoutMs,
        endpointSocket,
        prefix: config.metadataPrefix,
        instance: await instanceOf(gitea.uuid, config.namespace),
        clock,
        logger,
        guard,
        recordedUid: async (task, call) => (await records.get(task, call))?.value.uid ?? null,
      });
    },
  };
}
