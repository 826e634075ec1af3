import { join } from "node:path";
import { register } from "../clients/gitea/register.ts";
import type { Config } from "../controller/config/config.ts";
import { keepKey } from "../embedded/keys.ts";
import { findNatsServer } from "../embedded/nats_binary.ts";
import { startNatsServer } from "../embedded/nats_server.ts";
import { choosePorts } from "../embedded/ports.ts";
import { keepRegistration } from "../embedded/registration.ts";
import { startForge } from "../embedded/sample_forge.ts";
import {
  lockStateDirectory,
  openStateDirectory,
  stateFailure,
} from "../embedded/state_directory.ts";
import { createSupervisor } from "../embedded/supervisor.ts";
import type { Secret } from "../lib/secret.ts";
import type { ServerParts } from "./parts.ts";
import type { ProgramContext } from "./program.ts";

/** What is configured, or supplied on this machine where it is not. */
export interface Supplies {
  nats(signal: AbortSignal): Promise<ServerParts["nats"]>;
  gitea(signal: AbortSignal): Promise<ServerParts["gitea"]>;
  capabilityKeys(): Promise<readonly Secret[]>;
  facadePort(): Promise<number>;
  /** Names `STATE_DIR`, in which only one process lives at a time: whoever led from here is dead. */
  place(): Promise<string | null>;
}

/** The outcome of work in `STATE_DIR`; a failure names the folder and the way out. */
export function inState<T>({ stateDir }: Pick<Config, "stateDir">, work: Promise<T>): Promise<T> {
  return work.catch((error) => {
    throw stateFailure(stateDir, error);
  });
}

/**
 * Opens `STATE_DIR`, ends what an earlier run that was killed left running there, and chooses the
 * ports, which stay the same from start to start: executors that outlived us find us again.
 */
export async function createSupplies(
  config: Config,
  context: ProgramContext & { readonly stack: AsyncDisposableStack },
): Promise<Supplies> {
  const { clock, logger, stack } = context;
  const directory = await openStateDirectory(config.stateDir);
  // What runs there is ended next: it must not be another live controller's.
  stack.use(await lockStateDirectory(directory));
  const supervisor = stack.use(
    createSupervisor({
      directory: await openStateDirectory(join(directory, "children")),
      logger,
      clock,
    }),
  );
  await supervisor.endLeftovers();
  const ports = await choosePorts(join(directory, "ports.json"), ["nats", "forge", "facade"]);

  return {
    async nats(signal) {
      const { servers, user, password, credsFile, caFile } = config.nats;
      if (servers !== null) return { servers, user, password, credsFile, caFile };
      const cacheDir = join(directory, "cache");
      const program = await findNatsServer({
        cacheDir,
        env: context.env,
        logger,
        signal,
        clock,
      });
      const server = await startNatsServer({
        binary: program.path,
        directory: join(directory, "nats"),
        port: ports.nats,
        supervisor,
        clock,
        signal,
      });
      logger.info("nats-server is up", { url: server.url, pid: server.child.pid });
      return {
        servers: [server.url],
        user: server.user,
        password: server.password,
        credsFile: null,
        caFile: null,
      };
    },
    async gitea(signal) {
      const { url, registration } = config.gitea;
      if (url !== null && registration !== null) return { url, ...registration };
      if (url !== null) return { url, ...await keepRegistration(directory, { url }) };
      const forge = await startForge({
        directory: join(directory, "forge"),
        port: ports.forge,
        env: context.env,
        supervisor,
        clock,
        signal,
      });
      logger.info("sample forge is up", { url: forge.url, pid: forge.child.pid });
      const make = () =>
        register({
          url: forge.url,
          registrationToken: forge.registrationToken,
          name: "gitea-dynamic-runner",
          labels: ["self-hosted", "pod", "vm"],
          version: context.version,
          clock,
        }, { signal });
      return { url: forge.url, ...await keepRegistration(directory, { url: forge.url, make }) };
    },
    async capabilityKeys() {
      return config.capabilityKeys ??
        [await keepKey(await openStateDirectory(join(directory, "keys")), { name: "capability" })];
    },
    async place() {
      const kept = await keepKey(await openStateDirectory(join(directory, "keys")), {
        name: "place",
      });
      // A copy of the directory elsewhere is another place.
      const text = [kept.reveal(), config.hostname, directory].join("\n");
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
      return new Uint8Array(digest).toHex().slice(0, 32);
    },
    facadePort: () =>
      Promise.resolve(config.facade.listen.port === 0 ? ports.facade : config.facade.listen.port),
  };
}
