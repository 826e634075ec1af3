import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { gunzipSync } from "node:zlib";
import {
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { fromBinary, toBinary } from "../proto/runtime.ts";
import type { FacadeApi } from "./facade_api.ts";
import { createHandover, type HandoverDeps, HOLD_MS } from "./handover.ts";
import type { Outbox } from "./outbox.ts";
import {
  denied,
  errorAnswer,
  protoAnswer,
  type RunnerAnswer,
  type RunnerCall,
  unavailable,
} from "./runner_answer.ts";

/** Largest call of the runner, bytes, also after unpacking: Gitea takes outputs of 1 MiB each. */
export const MAX_CALL_BYTES = 64 * 1024 * 1024;

/** RunnerService as the official runner meets it on loopback. */
export interface RunnerService {
  /**
   * The answer to a call that is refused whatever its body says; undefined to read that. Every step of
   * the job can reach the gate: who is not its runner must not make it hold what they send.
   */
  refuse(call: Pick<RunnerCall, "method" | "header">): RunnerAnswer | undefined;
  /** Answers within 5 s, but for Declare, which is held until the facade answers. */
  answer(call: RunnerCall, signal: AbortSignal): Promise<RunnerAnswer>;
}

/** What the service works with. */
export interface RunnerServiceDeps extends HandoverDeps {
  readonly facade: FacadeApi;
  /** What the runner must show as uuid and token; the token is not the capability. */
  readonly uuid: string;
  readonly nonce: string;
  /** Stores the reports. */
  readonly outbox: Outbox;
}

/** Makes the service for one task. */
export function createRunnerService(deps: RunnerServiceDeps): RunnerService {
  const { facade, logger, outbox, taskId } = deps;
  const handover = createHandover(deps);

  const refuse: RunnerService["refuse"] = ({ method, header }) => {
    if (method === "/runner.v1.RunnerService/Register") {
      return denied("an executor cannot register a runner");
    }
    // Who cannot show the nonce is not the runner: a step of the job, most likely.
    if (!isSame(header("x-runner-token"), deps.nonce)) {
      logger.warn("call without the runner's nonce was refused", { method });
      return denied("not the runner of this executor");
    }
    if (header("x-runner-uuid") !== deps.uuid) return denied("not the runner of this executor");
    if (header("content-type") !== "application/proto") {
      return errorAnswer(415, {
        code: "unknown",
        message: "content type must be application/proto",
      });
    }
    return undefined;
  };
  const dispatch = async (call: RunnerCall, signal: AbortSignal): Promise<RunnerAnswer> => {
    const refusal = refuse(call);
    if (refusal !== undefined) return refusal;
    const body = unpacked(call);
    switch (call.method) {
      case "/runner.v1.RunnerService/Declare":
        return await handover.declare(body, signal);
      case "/runner.v1.RunnerService/FetchTask":
        return await handover.fetchTask(body, signal);
      case "/runner.v1.RunnerService/UpdateLog":
        return updateLog(body, { outbox, taskId });
      case "/runner.v1.RunnerService/UpdateTask":
        return updateTask(body, { outbox, taskId });
      case "/ping.v1.PingService/Ping": {
        const sent = await facade.rpc(call.method, body, { signal, timeoutMs: HOLD_MS });
        return sent.kind === "accepted" ? protoAnswer(sent.value.body) : unavailable(sent.why);
      }
      default: {
        const message = `no method "${call.method}"`;
        return errorAnswer(404, { code: "unimplemented", message });
      }
    }
  };
  return {
    refuse,
    async answer(call, signal) {
      try {
        return await dispatch(call, signal);
      } catch (error) {
        signal.throwIfAborted();
        logger.error("call of the runner failed", { method: call.method, error });
        const message = "the call cannot be read";
        return errorAnswer(400, { code: "invalid_argument", message });
      }
    },
  };
}

type Reports = Pick<RunnerServiceDeps, "outbox" | "taskId">;

function updateLog(body: Uint8Array, { outbox, taskId }: Reports): RunnerAnswer {
  const request = fromBinary(UpdateLogRequestSchema, body);
  if (request.taskId !== taskId) return foreignTask(taskId);
  const response = outbox.log(request);
  return response === undefined
    ? unavailable("the gate's log spool is full until the facade answers")
    : protoAnswer(toBinary(UpdateLogResponseSchema, response));
}

function updateTask(body: Uint8Array, { outbox, taskId }: Reports): RunnerAnswer {
  const request = fromBinary(UpdateTaskRequestSchema, body);
  if (request.state?.id !== taskId) return foreignTask(taskId);
  return protoAnswer(toBinary(UpdateTaskResponseSchema, outbox.state(request)));
}

function foreignTask(taskId: bigint): RunnerAnswer {
  return denied(`only task ${taskId} may be reported here`);
}

function unpacked(call: RunnerCall): Uint8Array {
  if (call.header("content-encoding") !== "gzip") return call.body;
  return gunzipSync(call.body, { maxOutputLength: MAX_CALL_BYTES });
}

function isSame(given: string | undefined, wanted: string): boolean {
  const left = Buffer.from(given ?? "");
  const right = Buffer.from(wanted);
  return left.length === right.length && timingSafeEqual(left, right);
}
