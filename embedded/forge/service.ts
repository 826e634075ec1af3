import { Code, ConnectError, type HandlerContext } from "../../clients/connect/error.ts";
import type { Register } from "../../clients/connect/router.ts";
import { PingService } from "../../proto/gen/ping/v1/ping_pb.ts";
import { RunnerSchema } from "../../proto/gen/runner/v1/messages_pb.ts";
import { RunnerService } from "../../proto/gen/runner/v1/services_pb.ts";
import { create } from "../../proto/runtime.ts";
import { ForgeError } from "./error.ts";
import type { Forge } from "./forge.ts";
import type { StoredRunner } from "./store.ts";

/** RunnerService and PingService over a {@link Forge}, errors worded and coded as Gitea's. */
export function forgeService(forge: Forge): Register {
  const call = <T>(context: HandlerContext, operation: (runner: StoredRunner) => T): T => {
    const { requestHeader } = context;
    return asGitea(() =>
      operation(
        forge.authenticate(
          requestHeader.get("x-runner-uuid") ?? "",
          requestHeader.get("x-runner-token") ?? "",
        ),
      )
    );
  };
  return (router) => {
    router.service(PingService, { ping: ({ data }) => ({ data: `Hello, ${data}!` }) });
    router.service(RunnerService, {
      register: (request) =>
        asGitea(() => {
          const runner = forge.register(request);
          return { runner: { ...shown(runner), token: runner.token } };
        }),
      declare: (request, context) =>
        call(context, (runner) => {
          forge.declare(runner, request);
          return { runner: shown(runner) };
        }),
      fetchTask: (request, context) => call(context, (runner) => forge.fetchTask(runner, request)),
      updateTask: (request, context) =>
        call(context, (runner) => forge.updateTask(runner, request)),
      updateLog: (request, context) => call(context, (runner) => forge.updateLog(runner, request)),
    });
  };
}

function asGitea<T>(operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    if (error instanceof ForgeError) {
      throw new ConnectError(error.message, Code.Unknown, undefined, undefined, error);
    }
    throw error;
  }
}

function shown({ id, uuid, name, version, labels }: StoredRunner) {
  return create(RunnerSchema, { id: BigInt(id), uuid, name, version, labels: [...labels] });
}
