import type { Action, Deadline, StrangerTier } from "../../controller/actions/action_kinds.ts";
import type { ActionOutcome } from "../../controller/actions/actions.ts";
import type { AssignmentId, BackendName } from "../../controller/model/ids.ts";
import { requestOf } from "./request.ts";
import type { BadInput, RouteContext } from "../define.ts";

/** Takes an action with note, key and precondition of the request. */
export function take(
  context: RouteContext,
  action: Action,
  body: { readonly note: string; readonly key?: string; readonly if_match?: string },
): Promise<ActionOutcome> {
  return context.actions.act(action, requestOf(context, body), { signal: context.signal });
}

/** A release; who forgets must have repeated the id. */
export function takeRelease(
  context: RouteContext,
  id: AssignmentId,
  body: {
    readonly note: string;
    readonly tier: Extract<Action, { readonly kind: "release" }>["tier"];
    readonly confirm: string;
    readonly key?: string;
    readonly if_match?: string;
  },
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
  body: {
    readonly note: string;
    readonly tier: StrangerTier;
    readonly confirm: string;
    readonly key?: string;
    readonly if_match?: string;
  },
): Promise<ActionOutcome | BadInput> {
  if (body.tier === "forget" && body.confirm !== name) {
    return { kind: "bad", detail: `Correct "confirm": repeat the name "${name}" to forget it` };
  }
  const { items } = await context.views.executors({ limit: MOST_EXECUTORS, cursor: null });
  const found = items.find((each) => each.name === name);
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

const MOST_EXECUTORS = 100_000;

/** A drain's deadline from a time or from seconds. */
export function deadlineOf(at: string | null, seconds: number | null): Deadline | null {
  if (at !== null) return { kind: "at", at: Date.parse(at) };
  return seconds === null ? null : { kind: "within", ms: seconds * 1_000 };
}

/** The action of a backend's form. */
export function backendFormAction(
  { name: backend, kind }: {
    readonly name: BackendName;
    readonly kind: "cordon" | "drain" | "resume" | "capacity" | "label";
  },
  form: {
    readonly hold: string;
    readonly minutes: string;
    readonly capacity: string;
    readonly label: "vm" | "vm-dev" | "";
  },
): Action {
  switch (kind) {
    case "cordon":
    case "resume":
      return { kind, backend };
    case "drain": {
      const minutes = Number(form.minutes);
      const hold = form.hold === "on" || form.hold === "true";
      return { kind, backend, hold, deadline: deadlineOf(null, minutes > 0 ? minutes * 60 : null) };
    }
    case "capacity":
      return { kind, backend, value: form.capacity === "" ? null : Number(form.capacity) };
    case "label":
      return { kind, backend, value: form.label === "" ? null : form.label };
    default:
      return kind satisfies never;
  }
}
