import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import { PingService } from "../proto/gen/ping/v1/ping_pb.ts";
import {
  FetchTaskResponseSchema,
  RunnerSchema,
  RunnerStatus,
} from "../proto/gen/runner/v1/messages_pb.ts";
import { RunnerService } from "../proto/gen/runner/v1/services_pb.ts";
import { Code, ConnectError, type HandlerContext } from "../clients/connect/error.ts";
import type { Register } from "../clients/connect/router.ts";
import type { ClaimAnswer, ExecutorEvents } from "../controller/offers.ts";
import type { Caller } from "./caller.ts";
import type { Registry, Resolved } from "./registry.ts";
import type { Relay } from "./relay.ts";

/** Header by which Gitea tells runners what it can do; the runner hands it on to jobs. */
const CAPABILITIES_HEADER = "X-Gitea-Actions-Capabilities";

/** What {@link runnerService} needs. */
export interface RunnerServiceDeps {
  readonly registry: Registry;
  readonly events: ExecutorEvents;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The checked caller of a call; throws `permission_denied`. */
  caller(context: HandlerContext): Caller;
  /** Gitea's capabilities as it last declared them; null when it has none. */
  declared(): string | null;
}

/** The official runner gives FetchTask 5 s. */
const HOLD_MS = 4_000;

/**
 * RunnerService and Ping as executors see them: each caller meets exactly its own task.
 *
 * `Register` is refused; `Ping` and `Declare` are answered here; `FetchTask` is held until the task
 * may be claimed, and hands it to one gate only; `UpdateTask` and `UpdateLog` go to the task's relay.
 */
export function runnerService(deps: RunnerServiceDeps): Register {
  const { registry, events, clock, logger } = deps;

  const refuse = (caller: Caller, why: string) => {
    logger.warn("executor refused", { assignment: caller.assignment, detail: why });
    return new ConnectError("this executor has no part in that", Code.PermissionDenied);
  };
  const foreign = (caller: Caller) => refuse(caller, "the assignment is another identity's");

  /** A claim that is not decided when the patience ends is asked for again. */
  const claim = async (caller: Caller, hold: AbortSignal): Promise<ClaimAnswer> => {
    try {
      return await events.claim(caller.assignment, caller.gate, hold);
    } catch (error) {
      if (hold.aborted) return { kind: "wait" };
      throw error;
    }
  };
  const fetchTask = async (caller: Caller, signal: AbortSignal) => {
    const none = create(FetchTaskResponseSchema, {});
    using patience = clock.timeout(HOLD_MS);
    const hold = AbortSignal.any([signal, patience.signal]);
    const found = await registry.waitOffer(caller.assignment, caller.spiffeId, hold);
    if (found.kind === "foreign") throw foreign(caller);
    // Not known (yet): after a restart the controller may still have to find it.
    if (found.kind === "unknown") return none;
    const { state } = found.offer;
    if (state.kind === "removed") throw refuse(caller, "the assignment has ended");
    if (state.kind === "claimed" && state.gate !== caller.gate) {
      throw refuse(caller, "another gate has claimed this job");
    }
    if (state.kind === "claimed") return create(FetchTaskResponseSchema, { ...taskOf(state.task) });
    const answer = await claim(caller, hold);
    if (answer.kind === "wait") return none;
    if (answer.kind === "refused") throw refuse(caller, answer.why);
    registry.claimed(caller.assignment, caller.gate, answer.logOffset);
    const after = registry.resolve(caller.assignment, caller.spiffeId);
    const now = after.kind === "found" ? after.offer.state : undefined;
    if (now?.kind !== "claimed" || now.gate !== caller.gate) {
      throw refuse(caller, "the assignment ended while it was being claimed");
    }
    logger.info("task handed over", { assignment: caller.assignment, serial: caller.serial });
    return create(FetchTaskResponseSchema, { ...taskOf(now.task) });
  };

  /** The relay of the caller's own task, if the reported task id is that one. */
  const relayOf = (caller: Caller, taskId: bigint): Relay => {
    const found = registry.resolve(caller.assignment, caller.spiffeId);
    if (found.kind !== "found") throw notFound(caller, found);
    const { info, state } = found.offer;
    if (BigInt(info.taskId) !== taskId) throw refuse(caller, "the report is for another task");
    if (state.kind === "claimed") {
      if (state.gate !== caller.gate) throw refuse(caller, "another gate has claimed this job");
      registry.delivered(caller.assignment);
      return state.relay;
    }
    if (state.kind === "removed" && state.relay !== null) return state.relay;
    throw refuse(caller, "the job is not claimed");
  };
  const notFound = (caller: Caller, found: Exclude<Resolved, { kind: "found" }>) => {
    if (found.kind === "foreign") return foreign(caller);
    return registry.isComplete
      ? refuse(caller, "the assignment is not known")
      : new ConnectError("the controller is starting: try again", Code.Unavailable);
  };

  return (router) => {
    router.service(PingService, {
      ping: (request) => ({ data: `Hello, ${request.data}!` }),
    });
    router.service(RunnerService, {
      register() {
        throw new ConnectError("runners do not register here", Code.PermissionDenied);
      },
      declare(request, context) {
        const caller = deps.caller(context);
        const capabilities = deps.declared();
        if (capabilities !== null) context.responseHeader.set(CAPABILITIES_HEADER, capabilities);
        const runner = create(RunnerSchema, {
          uuid: caller.assignment,
          name: caller.assignment,
          status: RunnerStatus.IDLE,
          version: request.version,
          labels: request.labels,
        });
        return { runner };
      },
      fetchTask: (_request, context) => fetchTask(deps.caller(context), context.signal),
      updateTask(request, context) {
        const caller = deps.caller(context);
        const { state, outputs } = request;
        if (state === undefined) throw new ConnectError("state is missing", Code.InvalidArgument);
        const relay = relayOf(caller, state.id);
        const found = registry.resolve(caller.assignment, caller.spiffeId);
        const removed = found.kind === "found" && found.offer.state.kind === "removed";
        // The controller has reported the end itself: a state that comes now is too late.
        if (removed && relay.outcome === null) throw refuse(caller, "the assignment has ended");
        return relay.updateTask({ state, outputs }, context.signal);
      },
      updateLog(request, context) {
        const caller = deps.caller(context);
        const relay = relayOf(caller, request.taskId);
        if (request.index < 0n) throw new ConnectError("index is negative", Code.InvalidArgument);
        return relay.updateLog(request, context.signal);
      },
    });
  };
}

function taskOf<T>(task: T | null): { task: T } | Record<string, never> {
  return task === null ? {} : { task };
}
