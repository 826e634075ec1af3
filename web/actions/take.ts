import type { Action, ReleaseTier, StrangerTier } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome } from "../../controller/actions/actions.ts";
import type { AssignmentId } from "../../controller/model/ids.ts";
import type { BadInput } from "../define.ts";
import { findExecutor } from "../find_executor.ts";
import type { RouteContext } from "../route_context.ts";
import { type RequestFields, requestOf } from "./request.ts";

/** Takes an action with note, key and precondition of the request. */
export function take(
  context: RouteContext,
  action: Action,
  body: RequestFields,
): Promise<ActionOutcome> {
  return context.actions.act(action, requestOf(context, body), { signal: context.signal });
}

/** A release; who forgets must have repeated the id. */
export function takeRelease(
  context: RouteContext,
  id: AssignmentId,
  body: RequestFields & { readonly tier: ReleaseTier; readonly confirm: string },
): Promise<ActionOutcome | BadInput> {
  if (body.tier === "forget" && body.confirm !== id) {
    const detail = `Correct "confirm": repeat the id "${id}" to forget it`;
    return Promise.resolve({ kind: "bad", detail });
  }
  return take(context, { kind: "release", id, tier: body.tier }, body);
}

/** An executor without an assignment is given up: the one of that name that is there now. */
export async function takeExecutorRelease(
  context: RouteContext,
  name: string,
  body: RequestFields & { readonly tier: StrangerTier; readonly confirm: string },
): Promise<ActionOutcome | BadInput> {
  if (body.tier === "forget" && body.confirm !== name) {
    return { kind: "bad", detail: `Correct "confirm": repeat the name "${name}" to forget it` };
  }
  const found = await findExecutor(context.views, name);
  const kind = "release-executor";
  const refuse = (detail: string) => {
    const request = requestOf(context, body);
    context.actions.refused({ kind, target: name }, request, detail);
    return detail;
  };
  if (found === undefined || found.uid === null) {
    return { kind: "absent", detail: refuse(`Look again: there is no executor "${name}"`) };
  }
  const { uid, backend, assignmentId } = found;
  if (assignmentId !== null) {
    const detail = refuse(`Release "${assignmentId}" instead: "${name}" is its executor`);
    return { kind: "conflict", detail, current: found };
  }
  return await take(context, { kind, backend, name, uid, tier: body.tier }, body);
}
