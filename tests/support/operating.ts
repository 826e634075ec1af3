import type { Action } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome, ActionRequest } from "../../controller/actions/actions.ts";
import type { Engine } from "../../controller/engine.ts";
import type { BackendName } from "../../controller/model/ids.ts";
import type { FlagStore } from "../../controller/records.ts";
import { createOperations, type Operations } from "../../controller/actions/operations.ts";
import {
  createOperatorActions,
  type OperatorActions,
} from "../../controller/actions/operator_actions.ts";
import { silentLogger } from "../../lib/logger.ts";
import {
  createFakeAudit,
  createFakeOperationStore,
  type FakeAudit,
  type FakeOperationStore,
} from "../fakes/operations.ts";
import type { World } from "./engine_world.ts";

/** What operators have on one controller of a world. */
export interface Operating extends AsyncDisposable {
  readonly actions: OperatorActions;
  readonly operations: Operations;
  readonly audit: FakeAudit;
  readonly store: FakeOperationStore;
  /** Backends that Gitea hands out for, as far as it was told. */
  readonly offered: Set<BackendName>;
  /** How often labels were looked at again. */
  readonly refreshes: () => number;
  /** Takes an action, and moves the world on until it is answered. */
  act(action: Action, over?: Partial<ActionRequest>): Promise<ActionOutcome>;
}

/** Settings of {@link operate}. */
export interface OperateOptions {
  /** Of an earlier controller of the same world. */
  readonly store?: FakeOperationStore;
  readonly audit?: FakeAudit;
  readonly capacity?: number;
  readonly vmLabel?: string;
  readonly stepDown?: (detail: string) => void;
  readonly guard?: () => void;
  /** In place of the world's own. */
  readonly flags?: FlagStore;
}

/** Gives operators' actions to a controller of the world. */
export function operate(world: World, engine: Engine, options: OperateOptions = {}): Operating {
  const store = options.store ?? createFakeOperationStore();
  const audit = options.audit ?? createFakeAudit();
  const operations = createOperations({ store, clock: world.clock, logger: silentLogger });
  const offered = new Set<BackendName>();
  let refreshes = 0;
  const actions = createOperatorActions({
    engine,
    flags: options.flags ?? world.store.flags,
    operations,
    audit,
    clock: world.clock,
    logger: silentLogger,
    random: () => 0.5,
    enabled: ["pod", "vm"],
    configured: (backend) => ({
      capacity: options.capacity ?? 4,
      label: backend === "vm" ? options.vmLabel ?? "vm" : backend,
    }),
    refreshLabels: () => void refreshes++,
    offered: (backend) => offered.has(backend),
    stepDown: options.stepDown ?? null,
    guard: options.guard ?? (() => {}),
  });
  let requests = 0;
  return {
    actions,
    operations,
    audit,
    store,
    offered,
    refreshes: () => refreshes,
    async act(action, over = {}) {
      const request: ActionRequest = {
        actor: { name: "alice", role: "operator" },
        note: "a node is replaced",
        requestId: `request-${++requests}`,
        key: null,
        ifMatch: null,
        ...over,
      };
      const call = { signal: new AbortController().signal };
      let answered = false;
      const answer = actions.act(action, request, call).finally(() => answered = true);
      // A refusal by throwing is an answer, too.
      answer.catch(() => {});
      while (!answered) {
        await world.clock.advance(0);
        if (!answered) await world.clock.advance(50);
      }
      return await answer;
    },
    [Symbol.asyncDispose]: () => actions[Symbol.asyncDispose](),
  };
}
