import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "../clients/connect/error.ts";
import type { AssignmentId } from "../controller/model/ids.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Logger } from "../lib/logger.ts";
import { type Access, EXPIRED } from "./access.ts";
import type { Caller } from "./caller.ts";
import { NO_PART } from "./own_offer.ts";

/** A request that nobody has judged: refused. */
export const NOT_JUDGED: Access = { kind: "refused", why: "the request was not judged" };

const ACCESS = createContextKey<Access>(NOT_JUDGED);

/** Carries how a request was judged to the handler of its call. */
export function withAccess(access: Access): ContextValues {
  return createContextValues().set(ACCESS, access);
}

/**
 * Lets a call in before its body is read, or throws the `ConnectError` of its refusal, which is
 * counted; why is told to our log only.
 */
export function admit(
  context: HandlerContext,
  { logger, recorder }: { readonly logger: Logger; readonly recorder: Recorder },
): void {
  const access = context.values.get(ACCESS);
  const { name } = context.method;
  const refuse = (why: string) => {
    recorder.facadeRequest(name, "permission_denied", 0);
    logger.warn("executor refused", { method: name, detail: why });
    throw noPart();
  };
  switch (access.kind) {
    case "busy":
      recorder.facadeRequest(name, "resource_exhausted", 0);
      // The header tells it from a message that is too large, which no repetition makes smaller.
      throw new ConnectError(`too many calls: ${access.why}`, Code.ResourceExhausted, {
        "retry-after": "1",
      });
    case "expired":
      recorder.facadeRequest(name, "unavailable", 0);
      throw new ConnectError(EXPIRED, Code.Unavailable);
    case "refused":
      return refuse(access.why);
    case "peer":
      // A peer may ping before it knows its assignment; all else is for callers with a capability.
      if (name !== "Ping" && access.caller.kind === "refused") refuse(access.caller.why);
      return;
    default:
      access satisfies never;
  }
}

/** Who makes a call that was admitted. Throws `permission_denied` for a peer without a capability. */
export function callerOf(context: HandlerContext): Caller {
  const access = context.values.get(ACCESS);
  if (access.kind === "peer" && access.caller.kind === "caller") return access.caller.caller;
  throw noPart();
}

/** Whose call it is; null for a peer without a capability. */
export function assignmentOf(values: ContextValues): AssignmentId | null {
  const access = values.get(ACCESS);
  return access.kind === "peer" && access.caller.kind === "caller"
    ? access.caller.caller.assignment
    : null;
}

function noPart(): ConnectError {
  return new ConnectError(NO_PART, Code.PermissionDenied);
}
