import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { gunzipSync } from "node:zlib";
import {
  DeclareRequestSchema,
  type FetchTaskResponse,
  FetchTaskResponseSchema,
  UpdateLogRequestSchema,
  UpdateLogResponseSchema,
  UpdateTaskRequestSchema,
  UpdateTaskResponseSchema,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { create, fromBinary, toBinary } from "../proto/runtime.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { backoffMs } from "../lib/retry.ts";
import type { FacadeApi } from "./facade_api.ts";
import type { Outbox } from "./outbox.ts";

/** One call of the runner, with its body read. */
export interface RunnerCall {
  /** `/package.Service/Method`. */
  readonly method: string;
  header(name: string): string | undefined;
  readonly body: Uint8Array;
}

/** The answer to it. */
export interface RunnerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

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
export interface RunnerServiceDeps {
  readonly facade: FacadeApi;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** What the runner must show as uuid and token; the token is not the capability. */
  readonly uuid: string;
  readonly nonce: string;
  /** The only task this executor may hold. */
  readonly taskId: bigint;
  /** Stores the reports. */
  readonly outbox: Outbox;
  /** What the runner called itself. */
  readonly onDeclare: (version: string) => void;
  /** The task was answered to the runner, or it is clear that it never will be. */
  readonly onTask: (task: "handed_over" | { readonly refused: string }) => void;
}

const FETCH_MS = 4000;

/** Makes the service for one task. */
export function createRunnerService(deps: RunnerServiceDeps): RunnerService {
  const { facade, clock, logger, outbox } = deps;
  /** Kept until the runner's first report, so that a lost answer can be repeated. */
  let handedOver: Uint8Array | undefined;
  let over = false;

  const fetchTask = async (body: Uint8Array, signal: AbortSignal): Promise<RunnerAnswer> => {
    if (handedOver !== undefined && !outbox.started) return proto(handedOver);
    if (over || outbox.started) return none();
    const until = clock.monotonic() + FETCH_MS;
    for (let attempt = 1; clock.monotonic() < until; attempt++) {
      const left = until - clock.monotonic();
      const sent = await facade.rpc("/runner.v1.RunnerService/FetchTask", body, {
        signal,
        timeoutMs: left,
      });
      if (sent.kind === "accepted") return take(sent.value.body);
      if (sent.kind === "refused") return refuse(sent.why);
      logger.warn("facade gives no task now", { why: sent.why });
      const wait = backoffMs(attempt, { firstMs: 100, maxMs: 1000 }, deps.random);
      await clock.sleep(Math.max(0, Math.min(wait, until - clock.monotonic())), signal);
    }
    return none();
  };
  const take = (body: Uint8Array): RunnerAnswer => {
    const task = readTask(body)?.task;
    if (task === undefined) return proto(body);
    if (task.id !== deps.taskId) {
      return refuse(`facade offered task ${task.id}, this executor is for ${deps.taskId}`);
    }
    handedOver = body;
    deps.onTask("handed_over");
    return proto(body);
  };
  const refuse = (why: string): RunnerAnswer => {
    over = true;
    deps.onTask({ refused: why });
    return none();
  };

  const declare = async (body: Uint8Array, signal: AbortSignal): Promise<RunnerAnswer> => {
    deps.onDeclare(fromBinary(DeclareRequestSchema, body).version);
    for (let attempt = 1;; attempt++) {
      const sent = await facade.rpc("/runner.v1.RunnerService/Declare", body, { signal });
      if (sent.kind === "accepted") {
        const name = "x-gitea-actions-capabilities";
        const value = sent.value.headers[name];
        return proto(sent.value.body, value === undefined ? {} : { [name]: value });
      }
      if (sent.kind === "refused") {
        refuse(sent.why);
        return failure(403, "permission_denied", sent.why);
      }
      await clock.sleep(
        backoffMs(attempt, { firstMs: 100, maxMs: 2000 }, deps.random),
        signal,
      );
    }
  };

  const updateLog = (body: Uint8Array): RunnerAnswer => {
    const request = fromBinary(UpdateLogRequestSchema, body);
    if (request.taskId !== deps.taskId) return foreignTask();
    const response = outbox.log(request);
    if (response === undefined) {
      return failure(503, "unavailable", "the gate's log spool is full until the facade answers");
    }
    return proto(toBinary(UpdateLogResponseSchema, response));
  };
  const updateTask = (body: Uint8Array): RunnerAnswer => {
    const request = fromBinary(UpdateTaskRequestSchema, body);
    if (request.state?.id !== deps.taskId) return foreignTask();
    return proto(toBinary(UpdateTaskResponseSchema, outbox.state(request)));
  };
  const foreignTask = () =>
    failure(403, "permission_denied", `only task ${deps.taskId} may be reported here`);

  const refuseCall: RunnerService["refuse"] = ({ method, header }) => {
    if (method === "/runner.v1.RunnerService/Register") {
      return failure(403, "permission_denied", "an executor cannot register a runner");
    }
    // Who cannot show the nonce is not the runner: a step of the job, most likely.
    if (!same(header("x-runner-token"), deps.nonce)) {
      logger.warn("call without the runner's nonce was refused", { method });
      return failure(403, "permission_denied", "not the runner of this executor");
    }
    if (header("x-runner-uuid") !== deps.uuid) {
      return failure(403, "permission_denied", "not the runner of this executor");
    }
    if (header("content-type") !== "application/proto") {
      return failure(415, "unknown", "content type must be application/proto");
    }
    return undefined;
  };
  const dispatch = async (call: RunnerCall, signal: AbortSignal): Promise<RunnerAnswer> => {
    const refusal = refuseCall(call);
    if (refusal !== undefined) return refusal;
    const body = unpacked(call);
    switch (call.method) {
      case "/runner.v1.RunnerService/Declare":
        return await declare(body, signal);
      case "/runner.v1.RunnerService/FetchTask":
        return await fetchTask(body, signal);
      case "/runner.v1.RunnerService/UpdateLog":
        return updateLog(body);
      case "/runner.v1.RunnerService/UpdateTask":
        return updateTask(body);
      case "/ping.v1.PingService/Ping": {
        const sent = await facade.rpc(call.method, body, { signal, timeoutMs: FETCH_MS });
        if (sent.kind === "accepted") return proto(sent.value.body);
        return failure(503, "unavailable", sent.why);
      }
      default:
        return failure(404, "unimplemented", `no method "${call.method}"`);
    }
  };
  return {
    refuse: refuseCall,
    async answer(call, signal) {
      try {
        return await dispatch(call, signal);
      } catch (error) {
        signal.throwIfAborted();
        logger.error("call of the runner failed", { method: call.method, error });
        return failure(400, "invalid_argument", "the call cannot be read");
      }
    },
  };
}

function none(): RunnerAnswer {
  return proto(toBinary(FetchTaskResponseSchema, create(FetchTaskResponseSchema)));
}

function readTask(body: Uint8Array): FetchTaskResponse | undefined {
  return body.length === 0 ? undefined : fromBinary(FetchTaskResponseSchema, body);
}

function unpacked(call: RunnerCall): Uint8Array {
  if (call.header("content-encoding") !== "gzip") return call.body;
  return gunzipSync(call.body, { maxOutputLength: MAX_CALL_BYTES });
}

function same(given: string | undefined, wanted: string): boolean {
  const left = Buffer.from(given ?? "");
  const right = Buffer.from(wanted);
  return left.length === right.length && timingSafeEqual(left, right);
}

function proto(body: Uint8Array, headers: Readonly<Record<string, string>> = {}): RunnerAnswer {
  return { status: 200, headers: { ...headers, "content-type": "application/proto" }, body };
}

/** An error as the Connect protocol writes it. */
function failure(status: number, code: string, message: string): RunnerAnswer {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: new TextEncoder().encode(JSON.stringify({ code, message })),
  };
}
