import { problem } from "./problem.ts";

/** Names under which a loopback listener is reached. */
export const LOOPBACK_HOSTS: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** Options of {@link guard}. */
export interface GuardOptions {
  /** Allowed `Host` values: a name allows every port, `name:port` just that one. */
  readonly hosts: readonly string[];
  readonly requestId: string;
}

/**
 * Refuses what must not reach a handler: a foreign `Host` (DNS rebinding, 421), another site's script
 * (403), a method with an effect (405: there are none yet). Undefined when the request may go on.
 */
export function guard(request: Request, { hosts, requestId }: GuardOptions): Response | undefined {
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
  if (request.method !== "GET" && request.method !== "HEAD") {
    return problem(405, {
      detail: `Use GET or HEAD: "${request.method}" is not offered`,
      requestId,
      headers: { allow: "GET, HEAD" },
    });
  }
  if (isForeign(request, host)) {
    return problem(403, {
      detail: "Open the page itself: another site's script may not read it",
      requestId,
    });
  }
  return undefined;
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
