import { createHash } from "node:crypto";
import type { IdentityProvider } from "../../controller/access/identity_provider.ts";
import type { SignOuts } from "../../controller/access/sign_outs.ts";
import type { AccessRules } from "../../controller/config/config.ts";
import type { Role, RoleRule } from "../../controller/model/role.ts";
import type { Clock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { type Access, createAccess, createCookieSeal } from "../../web/access/access.ts";
import type { Seal } from "../../web/access/seal.ts";
import { createSoleSignOuts } from "../fakes/sign_outs.ts";

/** One token for each role: `<role>-token`. */
export function tokenOf(role: Role): string {
  return `${role}-token`;
}

interface TestAccessOptions {
  readonly identities?: IdentityProvider;
  readonly signOuts?: Pick<SignOuts, "has" | "end">;
  readonly roles?: readonly RoleRule[];
  readonly publicUrl?: string;
  readonly secret?: string;
}

/** Access with a token for each role, and with a provider where `identities` is given. */
export function createTestAccess(clock: Clock, options: TestAccessOptions = {}): Access {
  return createAccess({
    rules: rulesOf(options),
    identities: options.identities ?? null,
    signOuts: options.signOuts ?? createSoleSignOuts(),
    secrets: secretsOf(options),
    publicUrl: options.publicUrl ?? null,
    clock,
  });
}

/** The seal of that access's cookies, for those who make one themselves. */
export function createTestSeal(options: TestAccessOptions = {}): Seal {
  return createCookieSeal(rulesOf(options), secretsOf(options));
}

function secretsOf({ secret = "s".repeat(32) }: TestAccessOptions): readonly Secret[] {
  return [new Secret(secret)];
}

function rulesOf({ identities, roles = [] }: TestAccessOptions): AccessRules {
  return {
    tokens: (["viewer", "operator", "admin"] as const).map((role) => ({
      name: `a-${role}`,
      role,
      sha256: createHash("sha256").update(tokenOf(role)).digest("hex"),
    })),
    oidc: identities === undefined ? null : {
      issuer: "https://gitea.example.org",
      clientId: "id",
      clientSecret: null,
      roles,
      redirectUri: "http://localhost:8080/sign-in/callback",
    },
  };
}
