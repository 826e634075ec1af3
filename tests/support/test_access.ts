import { createHash } from "node:crypto";
import type { SignOn } from "../../controller/access/sign_on.ts";
import type { SignOuts } from "../../controller/access/sign_outs.ts";
import type { RoleRule } from "../../controller/model/role.ts";
import type { Role } from "../../controller/actions/operation.ts";
import type { Clock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { type Access, createAccess } from "../../web/access/access.ts";
import { createSoleSignOuts } from "../fakes/sign_outs.ts";

/** One token for each role: `<role>-token`. */
export function tokenOf(role: Role): string {
  return `${role}-token`;
}

/** Access with a token for each role, and with a provider where `signOn` is given. */
export function createTestAccess(
  clock: Clock,
  options: {
    readonly signOn?: SignOn;
    readonly signOuts?: Pick<SignOuts, "has" | "end">;
    readonly roles?: readonly RoleRule[];
    readonly publicUrl?: string;
    readonly secret?: string;
  } = {},
): Access {
  const { signOn = null, roles = [], publicUrl = null, secret = "s".repeat(32) } = options;
  return createAccess({
    rules: {
      tokens: (["viewer", "operator", "admin"] as const).map((role) => ({
        name: `a-${role}`,
        role,
        sha256: createHash("sha256").update(tokenOf(role)).digest("hex"),
      })),
      oidc: signOn === null ? null : {
        issuer: "https://gitea.example.org",
        clientId: "id",
        clientSecret: null,
        roles,
        redirectUri: "http://localhost:8080/sign-in/callback",
      },
    },
    signOn,
    signOuts: options.signOuts ?? createSoleSignOuts(),
    secrets: [new Secret(secret)],
    publicUrl,
    clock,
  });
}
