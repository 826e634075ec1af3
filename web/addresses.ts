import type { NamedAction } from "./actions/named_action.ts";
import type { Route } from "./define.ts";

/** What is at an address, before a handler is looked for. */
export interface Addresses {
  /**
   * The methods that it takes, for `Allow` (RFC 9110 10.2.1): reads, actions, or both where a page and
   * its form share one. Reads for an address that nobody has.
   */
  methods(pathname: string): string;
  /** What a POST to it asks for; undefined where that is nothing that the audit knows. */
  action(pathname: string): NamedAction | undefined;
}

/** Makes {@link Addresses} of every route. */
export function createAddresses(routes: readonly Route[]): Addresses {
  const patterns = routes.map((route) => ({
    route,
    pattern: new RegExp(
      `^${route.path.replace(/[.]/g, "\\.").replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`,
    ),
  }));
  return {
    methods(pathname) {
      const kinds = patterns.filter(({ pattern }) => pattern.test(pathname))
        .map(({ route }) => route.kind);
      const methods = [
        ...kinds.length === 0 || kinds.some((kind) => kind !== "action") ? ["GET", "HEAD"] : [],
        ...kinds.includes("action") ? ["POST"] : [],
      ];
      return methods.join(", ");
    },
    action(pathname) {
      for (const { route, pattern } of patterns) {
        const match = route.kind === "action" ? pattern.exec(pathname) : null;
        if (route.kind !== "action" || match === null) continue;
        const params = Object.entries(match.groups ?? {}).map(([name, text]) =>
          [name, decoded(text)] as const
        );
        return route.named?.(Object.fromEntries(params));
      }
      return undefined;
    },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
