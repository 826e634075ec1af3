import {
  connectHandler,
  type NodeRequest,
  type NodeResponse,
} from "../clients/connect/node_handler.ts";
import type { ExecutorEvents } from "../controller/offers.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import type { TaskGroup } from "../lib/task_group.ts";
import { type Access, judgeAccess, type PeerReader, readPeer } from "./access.ts";
import { admit, callerOf, NOT_JUDGED, withAccess } from "./admission.ts";
import { callErrors } from "./call_errors.ts";
import type { CallObserver } from "./call_observer.ts";
import { createAuthenticator } from "./caller.ts";
import type { Capabilities } from "./capability.ts";
import { boundBody } from "./connections.ts";
import { executorCalls } from "./executor_calls.ts";
import { createPeerLimits, DEFAULT_LIMITS, type LimitOptions } from "./limits.ts";
import { createQuietLogger } from "./quiet_logger.ts";
import type { Registry } from "./registry.ts";
import type { Relay } from "./relay.ts";
import { runnerService } from "./runner_service.ts";
import { isSelfTest } from "./startup_check.ts";

/** What requests are answered with. */
export interface ListenerDeps {
  readonly registry: Registry;
  readonly events: ExecutorEvents;
  /** Without `spiffe://`. */
  readonly trustDomain: string;
  readonly capabilities: Capabilities;
  readonly recorder: Recorder;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Owns the answers to the gate's own calls; its signal ends the others. */
  readonly tasks: TaskGroup;
  /** Of the self test. */
  readonly nonce: string;
  /** By default the certificate that TLS has verified. */
  readonly readPeer?: PeerReader;
  /** Gitea's capabilities as it last declared them; null when it has none. */
  declared(): string | null;
  /** The executor is about to go, or its job has ended. */
  exited(relay: Relay): void;
  readonly onCall?: CallObserver | undefined;
}

/** Bounds of one request. */
export interface RequestBounds {
  /** Largest message, bytes, also when unpacked; 8 MiB. */
  readonly readMaxBytes?: number;
  readonly limits?: LimitOptions;
  /** From a request's head to the end of its body, milliseconds; 30 s. */
  readonly bodyMs?: number;
}

/** 100 rows of 64 KiB, or an output of 1 MiB, fit with room to spare (field reports). */
const READ_MAX_BYTES = 8 * 1024 * 1024;
/** Of one message: 5,000 log rows, decoded in some milliseconds. A gate sends at most 1,000. */
const MAX_FIELDS = 25_000;
const BODY_MS = 30_000;

/**
 * Answers every request of the facade. Each is judged before anything of its body is read; then
 * RunnerService, the gate's own calls or the self test have it.
 */
export function createListener(
  deps: ListenerDeps,
  bounds: RequestBounds,
): (request: NodeRequest, response: NodeResponse) => void {
  const { recorder, clock, tasks } = deps;
  // Of what callers cause.
  const logger = createQuietLogger(deps.logger, clock);
  const authenticator = createAuthenticator(deps);
  const limits = createPeerLimits(clock, bounds.limits ?? DEFAULT_LIMITS);
  const judged = new WeakMap<NodeRequest, Access>();
  const accessOf = (request: NodeRequest) => judged.get(request) ?? NOT_JUDGED;
  const answerExecutor = executorCalls({ ...deps, logger });
  const answerRunner = connectHandler(
    runnerService({ ...deps, logger, caller: callerOf }),
    {
      readMaxBytes: bounds.readMaxBytes ?? READ_MAX_BYTES,
      maxFields: MAX_FIELDS,
      contextValues: (request) => withAccess(accessOf(request)),
      gate: (context) => admit(context, { logger, recorder }),
      interceptors: [callErrors({ logger, recorder, clock, onCall: deps.onCall })],
      shutdownSignal: tasks.signal,
      fallback(request, response) {
        tasks.spawn("executor's call", () => answerExecutor(request, response, accessOf(request)));
      },
      onError: (error, path) => deps.logger.debug("answer not delivered", { path, error }),
    },
  );
  return (request, response) => {
    boundBody(request, response, { clock, ms: bounds.bodyMs ?? BODY_MS });
    const access = judgeAccess(request, response, {
      authenticator,
      limits,
      clock,
      readPeer: deps.readPeer ?? readPeer,
    });
    judged.set(request, access);
    if (isSelfTest(request, deps.nonce)) {
      response.statusCode = access.kind === "peer" ? 204 : 403;
      response.end();
    } else answerRunner(request, response);
  };
}
