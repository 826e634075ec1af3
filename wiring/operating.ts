import { createAuditLog } from "../clients/nats/audit_log.ts";
import type { NatsConnection } from "../clients/nats/connection.ts";
import { createFlagStore } from "../clients/nats/control_store.ts";
import { createOperationStore } from "../clients/nats/operation_store.ts";
import type { AuditLog } from "../controller/actions/audit.ts";
import type { Config } from "../controller/config/config.ts";
import type { Engine } from "../controller/engine.ts";
import type { LabelState } from "../controller/label_state.ts";
import type { BackendName } from "../controller/model/ids.ts";
import { createOperations, type Operations } from "../controller/actions/operations.ts";
import {
  createOperatorActions,
  type OperatorActions,
} from "../controller/actions/operator_actions.ts";
import type { Scheduler } from "../controller/scheduler.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";

/** What operators do while this process leads; disposing stops following: the next leader goes on. */
export interface Operating extends AsyncDisposable {
  readonly actions: OperatorActions;
  readonly operations: Operations;
  readonly audit: AuditLog;
}

/** Puts operators' actions together with the engine that they act on. */
export function createOperating(deps: {
  readonly engine: Engine;
  readonly labels: LabelState;
  readonly scheduler: Pick<Scheduler, "declared">;
  readonly enabled: readonly BackendName[];
  readonly config: Config;
  readonly nats: NatsConnection;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  /** Stops this leader in order, so that another replica leads. */
  resign(detail: string): void;
  guard(): void;
}): Operating {
  const { engine, labels, scheduler, config, nats, clock, logger } = deps;
  const labelOf = (backend: BackendName) =>
    backend === "vm" ? engine.flags(backend).label?.value ?? config.vmLabel : backend;
  const operations = createOperations({
    store: createOperationStore(nats, { clock }),
    clock,
    logger,
  });
  const audit = createAuditLog(nats, { clock, logger });
  const actions = createOperatorActions({
    engine,
    flags: createFlagStore(nats, { clock }),
    operations,
    audit,
    clock,
    logger,
    random: deps.random,
    enabled: deps.enabled,
    configured: (backend) => ({
      capacity: config.backends[backend].capacity,
      label: backend === "vm" ? config.vmLabel : backend,
    }),
    refreshLabels: labels.refresh,
    offered: (backend) => scheduler.declared()?.labels.includes(labelOf(backend)) === true,
    // The embedded profile is one process: nobody would take over.
    stepDown: config.profile === "embedded" ? null : deps.resign,
    guard: deps.guard,
  });
  return {
    actions,
    operations,
    audit,
    async [Symbol.asyncDispose]() {
      await actions[Symbol.asyncDispose]();
      await audit[Symbol.asyncDispose]();
    },
  };
}
