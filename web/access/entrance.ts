import { requestOf } from "../actions/request.ts";
import type { RouteContext } from "../route_context.ts";
import { isMachine } from "../pages.ts";
import { problem } from "../problem.ts";
import { seeOther } from "../redirect.ts";
import type { Entry } from "./access.ts";
import { ATTEMPTS, type Attempts } from "./attempts.ts";
import type { NamedAction } from "../actions/named_action.ts";
import { ownPath } from "./own_path.ts";

/** What anybody may ask for: probes, and what the page of sign-in is drawn with. */
export function isOpen(pathname: string): boolean {
  return pathname === "/healthz" || pathname === "/readyz" || pathname.startsWith("/assets/");
}

/** The answer to somebody who is not known: 401 for programs, the page of sign-in for people. */
export function challenge(
  { url, headers, method, requestId, peer }: RouteContext,
  entry: Exclude<Entry, { readonly kind: "known" }>,
  { tokens }: { readonly tokens: boolean },
): Response {
  if (entry.kind === "refused" && entry.why === "too many") {
    const seconds = ATTEMPTS.everyMs / 1_000;
    return problem(429, {
      detail: `Wait ${seconds} s before the next try, with another token: more than ` +
        `${ATTEMPTS.burst} that are not known came from your address "${peer}"`,
      requestId,
      headers: { "retry-after": String(seconds) },
    });
  }
  const reads = method === "GET" || method === "HEAD";
  if (entry.kind === "anonymous" && reads && !isMachine({ url, headers }) && isPage(headers)) {
    const to = ownPath(`${url.pathname}${url.search}`);
    const query = to === "/" ? "" : `?to=${encodeURIComponent(to)}`;
    return seeOther(`/sign-in${query}`);
  }
  const error = entry.kind === "refused" ? ', error="invalid_token"' : "";
  return problem(401, {
    detail: faultOf(entry, tokens),
    requestId,
    headers: { "www-authenticate": `Bearer realm="gitea-dynamic-runner"${error}` },
  });
}

/** Never with what was sent: it may be the token of another place, or ours without its scheme. */
function faultOf(
  entry: Exclude<Entry, { readonly kind: "known" }>,
  tokens: boolean,
): string {
  if (!tokens) {
    return entry.kind === "refused"
      ? 'Sign in at /sign-in, and send the cookie alone: the header "Authorization" is not used here, ' +
        "because ADMIN_TOKENS is not set"
      : "Sign in at /sign-in: this request names nobody";
  }
  if (entry.kind === "anonymous") {
    return 'Sign in at /sign-in, or send "Authorization: Bearer <token>": this request names nobody';
  }
  return entry.why === "form"
    ? 'Send "Authorization: Bearer <token>": the header "Authorization" has another form'
    : 'Send another token in "Authorization", or ask an admin to add its SHA-256 to ADMIN_TOKENS: ' +
      "this one is not there";
}

/** Somebody looks at a page, or does not say what they want. */
function isPage(headers: Headers): boolean {
  const accept = headers.get("accept");
  return accept === null || accept.includes("text/html") || accept.includes("*/*");
}

/**
 * Audits an action that another site asked for (403) in the name of somebody who is known. Bounded,
 * because every site that somebody opens can ask.
 */
export function auditForeign(
  context: RouteContext,
  { named, entry, response, attempts }: {
    /** What its address asks for. */
    readonly named: NamedAction | undefined;
    readonly entry: Entry;
    readonly response: Response;
    readonly attempts: Attempts;
  },
): void {
  if (response.status !== 403 || context.method !== "POST" || named === undefined) return;
  if (entry.kind !== "known" || !attempts.take(`foreign ${context.peer}`)) return;
  const request = requestOf(context, { note: "" });
  context.actions.refused(named, request, "Act on the page itself: another site asked for it");
}
