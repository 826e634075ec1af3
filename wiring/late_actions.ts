import { targetOf } from "../controller/action_kinds.ts";
import type { ActionOutcome, Actions } from "../controller/actions.ts";
import type { LeaderView } from "../controller/views.ts";
import type { Logger } from "../lib/logger.ts";

/** Actions that can be given later: pages are up before anything can be done. */
export interface LateActions extends Actions {
  become(actions: Actions): void;
}

/**
 * Makes {@link LateActions}; while this process does not lead they are refused with who does. The audit
 * is the leader's: what is refused here is in the log alone.
 */
export function createLateActions(leader: () => LeaderView, logger: Logger): LateActions {
  let current: Actions | null = null;
  const leading = () => leader().leading ? current : null;
  const refused: Actions["refused"] = (action, request, error) => {
    const actions = leading();
    if (actions !== null) return actions.refused(action, request, error);
    const { actor, note, requestId } = request;
    const { kind, target } = action;
    logger.info("action", {
      component: "actions",
      actor: actor.name,
      role: actor.role,
      action: kind,
      target,
      note,
      requestId,
      result: "refused",
      error,
    });
  };
  return {
    become(actions) {
      current = actions;
    },
    act(action, request, call) {
      const actions = leading();
      if (actions !== null) return actions.act(action, request, call);
      const { holder, self } = leader();
      const detail = holder !== null && holder !== self
        ? `Ask the leader: it is "${holder}"`
        : "Try again in a moment: this process does not lead yet";
      refused({ kind: action.kind, target: targetOf(action) }, request, detail);
      return Promise.resolve<ActionOutcome>({ kind: "unavailable", detail });
    },
    preview: (id, tier) => leading()?.preview(id, tier),
    tagOf: (target) => leading()?.tagOf(target) ?? null,
    refused,
  };
}
