import { createHash, randomBytes } from "node:crypto";
import type { Visitor } from "../../components/visitor.ts";
import type { IdentityProvider } from "../../controller/access/identity_provider.ts";
import type { SignOuts } from "../../controller/access/sign_outs.ts";
import type { Actor, RoleRule } from "../../controller/model/role.ts";
import type { AccessRules } from "../../controller/config/config.ts";
import type { Clock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { ATTEMPTS, type Attempts, createAttempts } from "./attempts.ts";
import { bearerOf, createBearer } from "./bearer.ts";
import { createSeal, type Seal } from "./seal.ts";
import { createSessionCookie, SESSION_COOKIE, type SessionCookie } from "./session_cookie.ts";
import { createSessions } from "./sessions.ts";
import { createTransactionCookie, type TransactionCookie } from "./transaction_cookie.ts";

/** Who asks, or why nobody is known to. */
export type Entry =
  | {
    readonly kind: "known";
    readonly actor: Actor;
    readonly visitor: Visitor;
    /** What requests with an effect must carry; null where no cookie lets them in. */
    readonly proof: string | null;
  }
  | { readonly kind: "anonymous" }
  /** What was shown is no token of ours, or (`form`) no bearer token at all. */
  | { readonly kind: "refused"; readonly why: "unknown" | "form" | "too many" };

/** Knows who asks, and lets people in. */
export interface Access {
  /** False without tokens and provider: then everybody on this machine is admin. */
  readonly required: boolean;
  /** Whether a token lets anybody in. */
  readonly tokens: boolean;
  /** Where else people sign in; null = nowhere. */
  readonly provider: {
    /** For the page. */
    readonly host: string;
    readonly identities: IdentityProvider;
    readonly roles: readonly RoleRule[];
  } | null;
  /** Of signing in, and of tokens that are not known, by address. */
  readonly attempts: Attempts;
  readonly session: SessionCookie;
  readonly transaction: TransactionCookie;
  /** `peer` is the address of the connection. */
  enter(headers: Headers, peer: string): Entry;
  /** Whose a token is. */
  bearer(token: string): Actor | undefined;
}

/** Without sign-in only this machine is listened to. */
const LOCAL: Actor = { name: "operator on this machine", role: "admin" };

/** Makes {@link Access}. `secrets` are the same at every replica; null = random ones of this process. */
export function createAccess(deps: {
  readonly rules: AccessRules;
  /** Of `rules.oidc`; null where that is. */
  readonly identities: IdentityProvider | null;
  /** Which sessions have been ended before their time. */
  readonly signOuts: Pick<SignOuts, "has" | "end">;
  readonly secrets: readonly Secret[] | null;
  readonly publicUrl: string | null;
  readonly clock: Clock;
}): Access {
  const { rules: { tokens, oidc }, identities, signOuts, clock } = deps;
  const required = tokens.length > 0 || oidc !== null;
  const secure = deps.publicUrl?.startsWith("https:") ?? false;
  // A host's own cookie: no other name of the same domain can set it.
  const prefix = secure ? "__Host-" : "";
  const seal = createCookieSeal(
    deps.rules,
    deps.secrets ?? [new Secret(randomBytes(32).toString("hex"))],
  );
  const attempts = createAttempts({ clock }, ATTEMPTS);
  const bearer = createBearer(tokens);
  const session = createSessionCookie(createSessions({ seal, signOuts, clock }), {
    name: `${prefix}${SESSION_COOKIE}`,
    secure,
  });

  return {
    required,
    tokens: tokens.length > 0,
    provider: oidc === null || identities === null
      ? null
      : { host: new URL(oidc.issuer).host, identities, roles: oidc.roles },
    attempts,
    session,
    transaction: createTransactionCookie({ seal, clock }, { name: `${prefix}gdr-sign-in`, secure }),
    bearer,
    enter(headers, peer) {
      if (!required) {
        return { kind: "known", actor: LOCAL, visitor: { kind: "local" }, proof: null };
      }
      const authorization = headers.get("authorization");
      if (authorization !== null) {
        const token = bearerOf(authorization);
        const actor = token === undefined ? undefined : bearer(token);
        if (actor === undefined) {
          if (!attempts.take(peer)) return { kind: "refused", why: "too many" };
          return { kind: "refused", why: token === undefined ? "form" : "unknown" };
        }
        return { kind: "known", actor, visitor: { kind: "token", ...actor }, proof: null };
      }
      const found = session.read(headers);
      if (found === undefined) return { kind: "anonymous" };
      const { actor, proof } = found;
      return { kind: "known", actor, visitor: { kind: "session", ...actor, proof }, proof };
    },
  };
}

/**
 * What cookies are sealed with. Who is taken out of the configuration is out at the next start, whatever
 * cookie there is: `rules` go into the keys.
 */
export function createCookieSeal(
  { tokens, oidc }: AccessRules,
  secrets: readonly Secret[],
): Seal {
  const bound = createHash("sha256").update(JSON.stringify([tokens, oidc])).digest("hex");
  return createSeal(secrets, bound);
}
