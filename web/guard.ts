import { problem } from "./problem.ts";

/** Names under which a loopback listener is reached. */
export const LOOPBACK_HOSTS: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** Options of {@link guard}. */
export interface GuardOptions {
  /** Allowed `Host` values: a name allows every port, `name:port` just that one. */
  readonly hosts: readonly string[];
  readonly requestId: string;
  /** Methods of the address, for `Allow`. */
  readonly allow?: string;
}

/**
 * Refuses what must not reach a handler: a foreign `Host` (DNS rebinding, 421), another site's script
 * or form (403), methods that are not used (405). Undefined when the request may go on.
 */
export function guard(
  request: Request,
  { hosts, requestId, allow = READS }: GuardOptions,
): Response | undefined {
  const url = new URL(request.url);
  const host = (request.headers.get("host") ?? url.host).toLowerCase();
  const name = host.replace(/:\d*$/, "");
  if (!hosts.some((allowed) => [host, name].includes(allowed.toLowerCase()))) {
    return problem(421, {
      detail: `Use one of the allowed hosts: "${host.slice(0, 255)}" is not one`,
      requestId,
      extra: { allowed: hosts },
    });
  }
  if (request.method === "POST") {
    return isOwn(request, host) ? undefined : problem(403, {
      detail: "Act on the page itself: another site may not do it",
      requestId,
    });
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    return refuseMethod(request.method, { requestId, allow });
  }
  if (isForeign(request, host)) {
    return problem(403, {
      detail: "Open the page itself: another site's script may not read it",
      requestId,
    });
  }
  return undefined;
}

const READS = "GET, HEAD";

/** 405 for a method that the address does not take. */
export function refuseMethod(
  method: string,
  { requestId, allow }: { readonly requestId: string; readonly allow: string },
): Response {
  return problem(405, {
    detail: `Use ${allow.replace(/, (?=[A-Z]+$)/, " or ")}: "${method}" is not offered here`,
    requestId,
    headers: { allow },
  });
}

/**
 * Whether a request with an effect comes from our own page, or from no browser at all: browsers always
 * send one of the two headers. Our policy for referrers makes their `Origin` of a form `null`.
 */
function isOwn(request: Request, host: string): boolean {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  if (site !== null && site !== "same-origin") return false;
  if (origin === null) return true;
  if (origin === "null") return site === "same-origin";
  return URL.canParse(origin) && new URL(origin).host === host;
}

/** Another site asks for more than to show the page: a link to us is fine, a fetch is not. */
function isForeign(request: Request, host: string): boolean {
  const site = request.headers.get("sec-fetch-site");
  const mode = request.headers.get("sec-fetch-mode");
  if ((site === "cross-site" || site === "same-site") && mode !== "navigate") return true;
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}
