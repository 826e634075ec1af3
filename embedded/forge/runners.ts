import { randomHex } from "../../lib/random_hex.ts";
import type { DeclareRequest, RegisterRequest } from "../../proto/gen/runner/v1/messages_pb.ts";
import { ForgeError } from "./error.ts";
import type { ForgeMeta, ForgeStore, StoredRunner } from "./store.ts";

/** The runners that have registered. Throws {@link ForgeError}. */
export interface Runners {
  register(request: RegisterRequest): StoredRunner;
  /** The runner of that uuid and token. */
  authenticate(uuid: string, token: string): StoredRunner;
  declare(runner: StoredRunner, request: DeclareRequest): void;
}

/** Makes {@link Runners} of what is kept in `meta`. */
export function createRunners(
  { meta, store }: { readonly meta: ForgeMeta; readonly store: ForgeStore },
): Runners {
  return {
    register(request) {
      if (request.token === "" || request.name === "") {
        throw new ForgeError("Internal", "missing runner token, name");
      }
      if (request.token !== meta.registrationToken) {
        throw new ForgeError("Internal", "runner registration token not found");
      }
      const runner: StoredRunner = {
        id: ++meta.lastId.runner,
        uuid: crypto.randomUUID(),
        token: randomHex(20),
        name: request.name,
        version: request.version,
        labels: request.labels,
        capabilities: request.capabilities,
      };
      meta.runners = [...meta.runners, runner];
      store.saveMeta(meta);
      return runner;
    },
    authenticate(uuid, token) {
      const runner = meta.runners.find((runner) => runner.uuid === uuid && runner.token === token);
      if (runner === undefined) throw new ForgeError("Unauthenticated", "unregistered runner");
      return runner;
    },
    declare(runner, request) {
      runner.version = request.version;
      runner.labels = request.labels;
      runner.capabilities = request.capabilities;
      store.saveMeta(meta);
    },
  };
}
