import type { Route } from "./define.ts";

/**
 * Says which methods an address takes, for `Allow` (RFC 9110 10.2.1): reads, actions, or both where a
 * page and its form share one. Reads for an address that nobody has.
 */
export function allowedBy(routes: readonly Route[]): (pathname: string) => string {
  const patterns = routes.map(({ path, kind }) => ({
    action: kind === "action",
    pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/:\w+/g, "[^/]+")}$`),
  }));
  return (pathname) => {
    const kinds = patterns.filter(({ pattern }) => pattern.test(pathname));
    const methods = [
      ...kinds.length === 0 || kinds.some(({ action }) => !action) ? ["GET", "HEAD"] : [],
      ...kinds.some(({ action }) => action) ? ["POST"] : [],
    ];
    return methods.join(", ");
  };
}
