import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { timingSafeEqual } from "node:crypto";
import type { Visitor } from "../../components/visitor.ts";
import type { SignOn } from "../../controller/access/sign_on.ts";
import type { SignOuts } from "../../controller/access/sign_outs.ts";
import type { Access as Rules } from "../../controller/config/parse_access.ts";
import type { Actor } from "../../controller/actions/operation.ts";
import type { Clock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { type Attempts, createAttempts } from "./attempts.ts";
import { bearerOf, createBearer } from "./bearer.ts";
import { readCookie } from "./cookies.ts";
import { createSeal, type Seal } from "./seal.ts";
import { createSessions, type Sessions } from "./sessions.ts";

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

/** Knows who asks. */
export interface Access {
  /** False without tokens and provider: then everybody on this machine is admin. */
  readonly required: boolean;
  readonly tokens: boolean;
  readonly signOn: SignOn | null;
  readonly rules: Rules;
  readonly seal: Seal;
  readonly sessions: Sessions;
  readonly attempts: Attempts;
  /** Cookies go over https alone. */
  readonly secure: boolean;
  readonly sessionCookie: string;
  readonly transactionCookie: string;
  /** Whose a token is. */
  bearer(token: string): Actor | undefined;
  /** `peer` is the address of the connection. */
  enter(headers: Headers, peer: string): Entry;
}

/** Without sign-in only this machine is listened to. */
const LOCAL: Actor = { name: "operator on this machine", role: "admin" };

/** Attempts of sign-in and wrong tokens from one address. */
export const ATTEMPTS = { burst: 10, everyMs: 3_000 } as const;

/** Makes {@link Access}. `secrets` are the same at every replica; null = random ones of this process. */
export function createAccess(deps: {
  readonly rules: Rules;
  readonly signOn: SignOn | null;
  /** Which sessions have been ended before their time. */
  readonly signOuts: Pick<SignOuts, "has" | "end">;
  readonly secrets: readonly Secret[] | null;
  readonly publicUrl: string | null;
  readonly clock: Clock;
}): Access {
  const { rules, signOn, signOuts, clock } = deps;
  const required = rules.tokens.length > 0 || rules.oidc !== null;
  const secure = deps.publicUrl?.startsWith("https:") ?? false;
  // Who is taken out of the configuration is out at the next start, whatever cookie there is.
  const bound = createHash("sha256").update(JSON.stringify([rules.tokens, rules.oidc])).digest(
    "hex",
  );
  const secrets = deps.secrets ?? [new Secret(randomBytes(32).toString("hex"))];
  const seal = createSeal(secrets, bound);
  const sessions = createSessions({ seal, signOuts, clock });
  const attempts = createAttempts({ clock }, ATTEMPTS);
  const bearer = createBearer(rules.tokens);
  // A host's own cookie: no other name of the same domain can set it.
  const prefix = secure ? "__Host-" : "";
  const sessionCookie = `${prefix}gdr-session`;

  return {
    required,
    tokens: rules.tokens.length > 0,
    signOn,
    rules,
    seal,
    sessions,
    attempts,
    secure,
    sessionCookie,
    transactionCookie: `${prefix}gdr-sign-in`,
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
      const cookie = readCookie(headers, sessionCookie);
      const session = cookie === undefined ? undefined : sessions.read(cookie);
      if (session === undefined) return { kind: "anonymous" };
      const { actor, proof } = session;
      return { kind: "known", actor, visitor: { kind: "session", ...actor, proof }, proof };
    },
  };
}

/** Compares a proof in constant time. */
export function isProof(given: unknown, proof: string): boolean {
  if (typeof given !== "string") return false;
  const [a, b] = [Buffer.from(given), Buffer.from(proof)];
  return a.length === b.length && timingSafeEqual(a, b);
}
