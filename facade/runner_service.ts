import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { create } from "../proto/runtime.ts";
import { PingService } from "../proto/gen/ping/v1/ping_pb.ts";
import { RunnerSchema, RunnerStatus } from "../proto/gen/runner/v1/messages_pb.ts";
import { RunnerService } from "../proto/gen/runner/v1/services_pb.ts";
import { Code, ConnectError, type HandlerContext } from "../clients/connect/error.ts";
import type { Register } from "../clients/connect/router.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import type { Caller } from "./caller.ts";
import { fetchTask } from "./fetch_task.ts";
import { NO_PART, ownOffer, STARTING } from "./own_offer.ts";
import type { Registry } from "./registry.ts";
import type { Relay } from "./relay.ts";

/** Header by which Gitea tells runners what it can do; the runner hands it on to jobs. */
const CAPABILITIES_HEADER = "X-Gitea-Actions-Capabilities";

/** Header by which the gate is told where its job's log begins; it repeats that in its heartbeats. */
const LOG_OFFSET_HEADER = "x-log-offset";

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

/**
 * RunnerService and Ping as executors see them: each caller meets exactly its own task.
 *
 * `Register` is refused; `Ping` and `Declare` are answered here; `FetchTask` is held until the task
 * may be claimed, and hands it to one gate only; `UpdateTask` and `UpdateLog` go to the task's relay.
 */
export function runnerService(deps: RunnerServiceDeps): Register {
  const { registry, logger } = deps;

  const refuse = (caller: Caller, why: string) => {
    logger.warn("executor refused", { assignment: caller.assignment, detail: why });
    return new ConnectError(NO_PART, Code.PermissionDenied);
  };

  /** Where reports on the caller's own task go, if the reported task id is that one. */
  const ownTask = (
    caller: Caller,
    taskId: bigint,
  ): { readonly relay: Relay; readonly isRemoved: boolean } => {
    const own = ownOffer(registry, caller);
    if (own.kind === "refused") throw refuse(caller, own.why);
    if (own.kind !== "found") throw new ConnectError(STARTING, Code.Unavailable);
    const { info, state } = own.offer;
    if (BigInt(info.taskId) !== taskId) throw refuse(caller, "the report is for another task");
    if (state.kind === "offered" || state.relay === null) {
      throw refuse(caller, "the job is not claimed");
    }
    if (state.kind === "claimed") registry.delivered(caller.assignment);
    return { relay: state.relay, isRemoved: state.kind === "removed" };
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
      async fetchTask(_request, context) {
        const caller = deps.caller(context);
        const handed = await fetchTask({ ...deps, refuse }, caller, context.signal);
        if (handed === null) return {};
        context.responseHeader.set(LOG_OFFSET_HEADER, String(handed.logOffset));
        return { task: handed.task };
      },
      updateTask(request, context) {
        const caller = deps.caller(context);
        const { state, outputs } = request;
        if (state === undefined) throw new ConnectError("state is missing", Code.InvalidArgument);
        const { relay, isRemoved } = ownTask(caller, state.id);
        // The controller has reported the end itself: a state that comes now is too late.
        if (isRemoved && relay.outcome === null) throw refuse(caller, "the assignment has ended");
        return relay.updateTask({ state, outputs }, context.signal);
      },
      updateLog(request, context) {
        const caller = deps.caller(context);
        const { relay } = ownTask(caller, request.taskId);
        if (request.index < 0n) throw new ConnectError("index is negative", Code.InvalidArgument);
        return relay.updateLog(request, context.signal);
      },
    });
  };
}
