import { KNOWN_NAMES } from "./variables.ts";

const PREFIXES =
  /^(GITEA|NATS|RUNNER_FACADE|POD|VM|SPIRE|SPIFFE|OPENSANDBOX|ADMIN|OIDC|CAPABILITY|EXECUTOR|OTEL)_/;

/**
 * Set by Kubernetes for every Service of the namespace, and by common Pod templates; `OTEL_DENO*` are the
 * platform's own.
 */
const NOT_OURS =
  /_SERVICE_(HOST|PORT)(_|$)|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_|$)|$)|^POD_(NAME|IP|IPS|UID)$|^OTEL_DENO/;

/** Read by `deno task ctl`, often in the same shell; one letter from a name that locks the pages. */
const OF_CTL: Readonly<Record<string, string>> = {
  ADMIN_TOKEN: "ADMIN_TOKENS says who may come in",
  ADMIN_TOKEN_FILE: "ADMIN_TOKENS_FILE says who may come in",
  ADMIN_URL: "ADMIN_LISTEN says where the dashboard listens",
};

/**
 * Variables that look like ours but are none, with the closest name: usually a typing error that
 * would otherwise silently leave a default in place. One sentence each, sorted.
 */
export function unknownVariables(names: readonly string[]): string[] {
  return names.filter((name) =>
    PREFIXES.test(name) && !NOT_OURS.test(name) && !KNOWN_NAMES.includes(name)
  ).sort().map((name) => {
    const ours = OF_CTL[name];
    if (ours !== undefined) return `${name} is for "deno task ctl" and is ignored here: ${ours}`;
    const closest = closestName(name);
    const hint = closest === undefined ? "" : `: did you mean ${closest}?`;
    return `${name} is not a setting of this program and is ignored${hint}`;
  });
}

function closestName(name: string): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const known of KNOWN_NAMES) {
    const distance = editDistance(name, known);
    if (distance <= 3 && (best === undefined || distance < best.distance)) {
      best = { name: known, distance };
    }
  }
  return best?.name;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
