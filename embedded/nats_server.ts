import { type Clock, systemClock } from "../lib/clock.ts";
import type { Secret } from "../lib/secret.ts";
import { replaceFile } from "../lib/replace_file.ts";
import { keepKey } from "./keys.ts";
import { natsAnswers } from "./nats_greeting.ts";
import { openStateDirectory } from "./state_directory.ts";
import type { Child, Supervisor } from "./supervisor.ts";

/** A nats-server of our own on loopback. It ends with its supervisor. */
export interface LocalNats {
  /** `nats://127.0.0.1:<port>`. */
  readonly url: string;
  readonly user: string;
  readonly password: Secret;
  readonly child: Child;
}

const USER = "gdr";
const MAX_PAYLOAD = 8 * 1024 * 1024;

/**
 * Starts nats-server with JetStream on files in `directory` (mode 0700), reachable from this machine
 * only and with a password of its own. Every message is synced to disk before it is acknowledged.
 * Rejects with `ChildError` (the server's last lines in it), `StateError`, or the signal's reason.
 */
export async function startNatsServer(
  options: {
    readonly binary: string;
    readonly directory: string;
    readonly port: number;
    readonly supervisor: Supervisor;
    readonly signal: AbortSignal;
    readonly clock?: Clock;
  },
): Promise<LocalNats> {
  const { binary, port, supervisor, signal, clock = systemClock } = options;
  const directory = await openStateDirectory(options.directory);
  const password = await keepKey(directory, { name: "password" });
  const config = `${directory}/nats.conf`;
  await replaceFile(config, configText({ directory, port, password }));
  const child = await supervisor.start({
    name: "nats-server",
    command: [binary, "--config", config],
    env: {},
    cwd: directory,
    ready: (waiting) => natsAnswers(port, { clock, signal: waiting }),
  }, { signal });
  return { url: `nats://127.0.0.1:${port}`, user: USER, password, child };
}

/** The server's configuration; strings are quoted as JSON, which its format takes. */
function configText(
  { directory, port, password }: {
    readonly directory: string;
    readonly port: number;
    readonly password: Secret;
  },
): string {
  return `listen: "127.0.0.1:${port}"
server_name: "gdr-embedded"
max_payload: ${MAX_PAYLOAD}
authorization { user: ${USER}, password: ${JSON.stringify(password.reveal())} }
jetstream {
  store_dir: ${JSON.stringify(`${directory}/jetstream`)}
  sync_interval: always
}
`;
}
