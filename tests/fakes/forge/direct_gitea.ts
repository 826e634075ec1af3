import { Code, ConnectError } from "../../../clients/connect/error.ts";
import { giteaErrorFrom } from "../../../clients/gitea/error.ts";
import type { Gitea } from "../../../controller/gitea.ts";
import type { Forge } from "../../../embedded/forge/forge.ts";
import type { StoredRunner } from "../../../embedded/forge/store.ts";
import { untilAborted } from "../../../lib/abortable.ts";
import type { Secret } from "../../../lib/secret.ts";
import {
  DeclareRequestSchema,
  FetchTaskRequestSchema,
  UpdateLogRequestSchema,
  UpdateTaskRequestSchema,
} from "../../../proto/gen/runner/v1/messages_pb.ts";
import { create } from "../../../proto/runtime.ts";
import { type Faults, take } from "./faults.ts";

/** The `Gitea` port on a forge in this process; errors are those of the real client. */
export function directGitea(
  { faults, forge, token, url, uuid }: {
    readonly forge: Forge;
    readonly faults: Faults;
    readonly url: string;
    readonly uuid: string;
    readonly token: Secret;
  },
): Gitea {
  const call = async <T>(
    signal: AbortSignal,
    operation: (runner: StoredRunner) => T,
  ): Promise<T> => {
    await Promise.resolve();
    signal.throwIfAborted();
    try {
      if (faults.down) throw new TypeError("tcp connect error: Connection refused");
      return operation(forge.authenticate(uuid, token.reveal()));
    } catch (error) {
      const known = error instanceof Error && error.name === "ForgeError"
        ? new ConnectError(error.message, Code.Unknown)
        : error;
      throw giteaErrorFrom(known, { action: "call", url });
    }
  };
  return {
    declare: ({ capabilities, labels, version }, { signal }) =>
      call(signal, (runner) => {
        const request = { version, labels: [...labels], capabilities: [...capabilities] };
        forge.declare(runner, create(DeclareRequestSchema, request));
        return { serverCapabilities: null };
      }),
    async fetchTask(tasksVersion, { signal }) {
      const answer = await call(
        signal,
        (runner) => forge.fetchTask(runner, create(FetchTaskRequestSchema, { tasksVersion })),
      );
      if (answer.task !== undefined && take(faults, "handOutAndHang")) await untilAborted(signal);
      return answer;
    },
    updateTask: ({ outputs, state }, { signal }) =>
      call(signal, (runner) =>
        forge.updateTask(
          runner,
          create(UpdateTaskRequestSchema, { state, outputs: { ...outputs } }),
        )),
    updateLog: ({ index, noMore, rows, taskId }, { signal }) =>
      call(signal, (runner) => {
        const request = { taskId, index, noMore, rows: [...rows] };
        return forge.updateLog(runner, create(UpdateLogRequestSchema, request));
      }),
  };
}
