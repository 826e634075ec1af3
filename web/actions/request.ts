import type { ActionRequest } from "../../controller/actions/actions.ts";
import type { RouteContext } from "../route_context.ts";

/** `Idempotency-Key` and the like: what a header can carry, and not too long. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** What every action's body may say of the request itself; `key` and `if_match` in forms alone. */
export interface RequestFields {
  readonly note: string;
  readonly key?: string;
  readonly if_match?: string;
}

/**
 * Who asks for an action, with key and precondition: of the headers, or of a form's hidden fields
 * `key` and `if_match`.
 */
export function requestOf(
  { actor, headers, requestId }: Pick<RouteContext, "actor" | "headers" | "requestId">,
  body: RequestFields,
): ActionRequest {
  return {
    actor,
    note: body.note,
    requestId,
    key: headers.get("idempotency-key") ?? nothing(body.key),
    ifMatch: headers.get("if-match") ?? nothing(body.if_match),
  };
}

/** What is wrong with the headers of an action; null when nothing is. */
export function faultOfHeaders(headers: Headers): string | null {
  for (const name of ["idempotency-key", "if-match"]) {
    const value = headers.get(name);
    if (value === null || KEY.test(value) || (name === "if-match" && value.length <= 1_000)) {
      continue;
    }
    return `Correct the header "${name}": expected 1 to 255 visible ASCII characters`;
  }
  return null;
}

function nothing(text: string | undefined): string | null {
  return text === undefined || text === "" ? null : text;
}
