import { targetOf } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome, Actions } from "../../controller/actions/actions.ts";
import { faultOfRole, roleFor } from "../../controller/access/rules.ts";

/** The same actions, each refused (and audited) where the actor's role does not suffice. */
export function byRole(actions: Actions): Actions {
  return {
    ...actions,
    act(action, request, call) {
      const detail = faultOfRole(request.actor.role, roleFor(action));
      if (detail === null) return actions.act(action, request, call);
      actions.refused({ kind: action.kind, target: targetOf(action) }, request, detail);
      return Promise.resolve<ActionOutcome>({ kind: "forbidden", detail });
    },
  };
}
