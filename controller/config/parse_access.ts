import { roleNamed, type RoleRule } from "../model/role.ts";
import { type AccessRules, CALLBACK_PATH, type TokenRule } from "./config.ts";
import type { Reader } from "./reader.ts";
import { baseUrl, isLoopback } from "./values.ts";

/** Of tokens, and of groups with a role. */
const MAX_RULES = 1_000;
const URL_RULE = {
  allowed: "an http or https URL without user, query and fragment",
  parse: baseUrl(["http", "https"]),
};
const ISSUER_RULE = {
  allowed: "an https URL without user, query and fragment (http on loopback only)",
  parse(text: string) {
    const url = URL_RULE.parse(text);
    if (url === undefined) return undefined;
    const { protocol, hostname } = new URL(url);
    return protocol === "https:" || isLoopback(hostname) ? text : undefined;
  },
};

/** `ADMIN_TOKENS`, `OIDC_*` and `ADMIN_PUBLIC_URL`. */
export function accessOf(
  reader: Reader,
): { readonly publicUrl: string | null; readonly access: AccessRules } {
  const publicUrl = reader.optional("ADMIN_PUBLIC_URL", URL_RULE);
  const tokens = reader.optional("ADMIN_TOKENS", {
    allowed: "lines name:role:sha256hex, each name and hash once, with role viewer, operator or " +
      "admin and the token's SHA-256 as 64 hexadecimal digits",
    parse: parseTokens,
  }) ?? [];
  return { publicUrl, access: { tokens, oidc: oidcOf(reader, publicUrl) } };
}

function oidcOf(reader: Reader, publicUrl: string | null): AccessRules["oidc"] {
  const issuer = reader.optional("OIDC_ISSUER", ISSUER_RULE);
  const clientId = reader.text("OIDC_CLIENT_ID");
  const clientSecret = reader.secret("OIDC_CLIENT_SECRET");
  const roles = reader.optional("OIDC_ROLE_MAP", {
    allowed:
      "group=role, separated by commas or lines, with role viewer, operator or admin; the group " +
      "* is everybody who signs in",
    parse: parseRoleMap,
  });
  const together = ["OIDC_CLIENT_ID", "OIDC_ROLE_MAP", "ADMIN_PUBLIC_URL"] as const;
  if (!reader.given("OIDC_ISSUER")) {
    const alone = (["OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_ROLE_MAP"] as const)
      .filter((name) => reader.given(name));
    if (alone.length > 0) {
      reader.missing(
        ["OIDC_ISSUER"],
        ISSUER_RULE.allowed,
        `OIDC_ISSUER is required for ${alone.join(", ")}`,
      );
    }
    return null;
  }
  const missing = together.filter((name) => !reader.given(name));
  if (missing.length > 0) {
    reader.missing(missing, "set", `${missing.join(", ")} required for OIDC_ISSUER`);
  }
  if (issuer === null || clientId === null || roles === null || publicUrl === null) return null;
  const redirectUri = `${publicUrl}${CALLBACK_PATH}`;
  if (new URL(publicUrl).pathname !== "/") {
    const allowed = "a URL without a path where OIDC_ISSUER is set";
    reader.fault("ADMIN_PUBLIC_URL", allowed);
  }
  return { issuer, clientId, clientSecret, roles, redirectUri };
}

/** Lines `name:role:sha256hex`; empty ones and those that begin with `#` say nothing. */
function parseTokens(text: string): readonly TokenRule[] | undefined {
  const lines = linesOf(text, /\r?\n/);
  const rules = lines.flatMap((line) => {
    const match = /^([A-Za-z0-9][A-Za-z0-9._@-]{0,63}):([a-z]+):([0-9A-Fa-f]{64})$/.exec(line);
    const role = roleNamed(match?.[2] ?? "");
    if (match === null || role === undefined) return [];
    return [{ name: match[1] ?? "", role, sha256: (match[3] ?? "").toLowerCase() }];
  });
  const once = (values: readonly string[]) => new Set(values).size === values.length;
  const good = rules.length === lines.length && rules.length > 0 && rules.length <= MAX_RULES &&
    once(rules.map(({ name }) => name)) && once(rules.map(({ sha256 }) => sha256));
  return good ? rules : undefined;
}

/** `group=role`, separated by commas or lines. */
function parseRoleMap(text: string): readonly RoleRule[] | undefined {
  const parts = linesOf(text, /[,\n]/);
  const rules = parts.flatMap((part) => {
    const at = part.lastIndexOf("=");
    const role = roleNamed(part.slice(at + 1).trim());
    const group = part.slice(0, Math.max(at, 0)).trim();
    return role === undefined || group === "" || group.length > 255 ? [] : [{ group, role }];
  });
  const good = rules.length === parts.length && rules.length > 0 && rules.length <= MAX_RULES;
  return good ? rules : undefined;
}

function linesOf(text: string, separator: RegExp): readonly string[] {
  return text.split(separator).map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}
