import type { SvidSource } from "../clients/spiffe/workload_api.ts";
import { taskIdOf } from "../controller/model/ids.ts";
import { formatTraceparent, type SpanId } from "../controller/traces/trace_context.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { randomHex } from "../lib/random_hex.ts";
import { createTaskGroup, type TaskGroup } from "../lib/task_group.ts";
import { EXIT } from "./exit_codes.ts";
import { createFacadeApi, type FacadeApi } from "./facade_api.ts";
import { createFacadeLink } from "./facade_link.ts";
import { GateEnd } from "./gate_end.ts";
import type { GateLimits } from "./gate_limits.ts";
import { createHeartbeat, type Heartbeat } from "./heartbeat.ts";
import type { HandedOver } from "./handover.ts";
import type { Launch } from "./launch.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { createRowSpool } from "./row_spool.ts";
import { createRunnerService, type RunnerService } from "./runner_service.ts";

/** What stands between a runner and the facade, whatever runs the job and however it gets here. */
export interface GateCore extends AsyncDisposable {
  readonly facade: FacadeApi;
  /** What the runner meets in Gitea's place; it must show {@link GateCore.nonce}. */
  readonly service: RunnerService;
  readonly nonce: string;
  readonly outbox: Outbox;
  readonly heartbeat: Heartbeat;
  /** Work that ends with the gate. */
  readonly group: TaskGroup;
  /** True once the task was handed to the runner. */
  readonly handedOver: boolean;
  /** Rejects with a {@link GateEnd} when it is clear that this executor gets no task. */
  readonly refused: Promise<never>;
}

/** What it works with. */
export interface GateCoreDeps {
  readonly svids: Pick<SvidSource, "current">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly logger: Logger;
  readonly limits: GateLimits;
  /** Holds log rows that do not fit into memory; made when it is needed. */
  readonly spoolFile: string;
  /** Ends the {@link GateCore.group}; only its dispose by default. */
  readonly signal?: AbortSignal;
  /** The runner has declared itself. */
  onDeclare(): void;
  /** The task was handed to the runner. */
  onTask(): void;
}

/** Makes the core of one executor's gate; nothing is sent yet. */
export function createGateCore(launch: Launch, deps: GateCoreDeps): GateCore {
  const { clock, limits } = deps;
  const stack = new AsyncDisposableStack();
  const link = stack.use(createFacadeLink(deps.svids, {
    url: launch.facadeUrl,
    spiffeId: launch.facadeSpiffeId,
    assignment: launch.assignment,
    capability: launch.capability,
    gate: randomHex(16),
    traceparent: launch.trace && formatTraceparent({ ...launch.trace, spanId: ownSpan() }),
  }));
  const facade = createFacadeApi(link, clock);
  const spool = stack.use(createRowSpool({ file: deps.spoolFile }));
  const group = stack.use(createTaskGroup(deps.logger, deps.signal));
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => {});
  let handedOver: HandedOver | undefined;
  let version = "";
  const taskId = BigInt(taskIdOf(launch.assignment) ?? "0");
  const outbox = createOutbox({
    ...deps,
    taskId,
    sender: facade,
    spool,
    runnerVersion: () => version,
    refusalMs: limits.refusalMs,
  });
  const nonce = randomHex(32);
  const service = createRunnerService({
    ...deps,
    facade,
    outbox,
    uuid: launch.assignment,
    nonce,
    taskId,
    onDeclare(said) {
      version = said;
      deps.onDeclare();
    },
    onTask(task) {
      if ("refused" in task) {
        refused.reject(new GateEnd(EXIT.claimRefused, `claim refused: ${task.refused}`));
      } else {
        handedOver = task;
        deps.onTask();
      }
    },
  });
  const heartbeat = createHeartbeat({
    ...deps,
    facade,
    outbox,
    logOffset: () => handedOver?.logOffset,
    end: refused.reject,
  });
  return {
    facade,
    service,
    nonce,
    outbox,
    heartbeat,
    group,
    get handedOver() {
      return handedOver !== undefined;
    },
    refused: refused.promise,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The span of this gate's life in its assignment's trace. */
function ownSpan(): SpanId {
  return randomHex(8) as SpanId;
}
