import { bareHost } from "../lib/host.ts";
import { RPC_PREFIX } from "./facade_api.ts";

/** Where a request of the runner goes. */
export type Route =
  /** To the facade; `method` is `/package.Service/Method`. */
  | { readonly kind: "facade"; readonly method: string }
  /** To where it was going. */
  | { readonly kind: "origin" };

/** Tells the runner's own calls from everything else. */
export interface GiteaRoute {
  /** Gitea's host for TLS, without brackets. */
  readonly host: string;
  readonly secure: boolean;
  /** `target` is an absolute URL. */
  route(method: string, target: string): Route;
  /** True for the `host:port` of a CONNECT that leads to Gitea. */
  isGitea(authority: string): boolean;
}

const SERVICE = /^\/(runner\.v1\.RunnerService|ping\.v1\.PingService)\/[A-Za-z]+$/;

/**
 * Only POSTs to RunnerService and Ping below Gitea's URL, on exactly its host and port, are for the
 * facade. Spellings of a host are compared as the URL parser writes them (`127.1` is `127.0.0.1`).
 */
export function createGiteaRoute(giteaUrl: string): GiteaRoute {
  const gitea = new URL(giteaUrl);
  const prefix = gitea.pathname.replace(/\/+$/, "") + RPC_PREFIX;
  const secure = gitea.protocol === "https:";
  return {
    secure,
    host: bareHost(gitea.hostname),
    route(method, target) {
      const url = URL.parse(target);
      if (method !== "POST" || url?.origin !== gitea.origin) return { kind: "origin" };
      if (!url.pathname.startsWith(`${prefix}/`)) return { kind: "origin" };
      const rpc = url.pathname.slice(prefix.length);
      return SERVICE.test(rpc) ? { kind: "facade", method: rpc } : { kind: "origin" };
    },
    isGitea(authority) {
      return secure && URL.parse(`https://${authority}`)?.host === gitea.host;
    },
  };
}
