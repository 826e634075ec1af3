import type { Config } from "../controller/config/config.ts";
import type { Supplies } from "./supplies.ts";

/** Everything as configured (`PROFILE=production`): nothing is started, and no STATE_DIR is touched. */
export function createConfiguredSupplies(config: Config): Supplies {
  return {
    nats() {
      const { servers, user, password, credsFile, caFile } = config.nats;
      return Promise.resolve({
        servers: given("NATS_URL", servers),
        user,
        password,
        credsFile,
        caFile,
      });
    },
    gitea() {
      const { url, registration } = config.gitea;
      return Promise.resolve({
        url: given("GITEA_URL", url),
        ...given("GITEA_RUNNER_UUID", registration),
      });
    },
    capabilityKeys: () => Promise.resolve(given("CAPABILITY_KEY", config.capabilityKeys)),
    facadePort: () => Promise.resolve(config.facade.listen.port),
    // Replicas live anywhere: whoever led may live, too.
    place: () => Promise.resolve(null),
  };
}

/** Parsing has refused this profile without them. */
function given<T>(name: string, value: T | null): T {
  if (value === null) throw new TypeError(`Read the configuration: ${name} is required`);
  return value;
}
