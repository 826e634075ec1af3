import type { Context } from "hono";
import { h } from "preact";
import { type SignInFault, SignInPage } from "../../components/SignInPage.tsx";
import type { Actor } from "../../controller/model/role.ts";
import type { Logger } from "../../lib/logger.ts";
import type { WebEnv } from "../env.ts";
import { respondPlain, type Site } from "../pages.ts";
import { seeOther } from "../redirect.ts";
import type { RouteContext } from "../route_context.ts";
import type { Access } from "./access.ts";
import { ATTEMPTS } from "./attempts.ts";

/** Answers a path of sign-in. Rejects never but for faults of this program. */
export type SignIn = (c: Context<WebEnv>, context: RouteContext) => Promise<Response>;

/** What the page of sign-in shows. */
export interface SignInShown {
  /** Where it leads afterwards: a path of ours. */
  readonly to: string;
  /** Why the last try has failed. */
  readonly fault?: SignInFault;
  /** What its text is filled with. */
  readonly values?: Readonly<Record<string, string | number>>;
  readonly status?: number;
}

/** What every way to sign in ends with. */
export interface SignInSteps {
  /** The page, with a word about what went wrong. */
  show(c: Context<WebEnv>, context: RouteContext, shown: SignInShown): Promise<Response>;
  /** Begins a session of `actor`, and leads to where they wanted to. */
  letIn(context: RouteContext, actor: Actor, to: string): Promise<Response>;
  /** The answer to one attempt too many from an address. */
  tooMany(c: Context<WebEnv>, context: RouteContext, to: string): Promise<Response>;
}

/** What the parts of sign-in are made of. */
export interface SignInDeps {
  readonly access: Access;
  readonly site: Site;
  readonly logger: Logger;
}

/** Makes {@link SignInSteps}. */
export function createSignInSteps({ access, site, logger }: SignInDeps): SignInSteps {
  const provider = access.provider?.host ?? null;
  const show: SignInSteps["show"] = (c, context, shown) => {
    const { to, fault = null, values = {}, status = 200 } = shown;
    return respondPlain(c, { ...context, url: addressOf(context, to), visitor: STRANGER }, site, {
      title: ({ dict }) => dict.signIn.title,
      body: () => h(SignInPage, { to, provider, tokens: access.tokens, fault, values }),
      status,
    });
  };
  return {
    show,
    async letIn({ headers }, actor, to) {
      const cookie = await access.session.begin(headers, actor);
      logger.info("signed in", { actor: actor.name, role: actor.role });
      return seeOther(to, [cookie, access.transaction.cleared]);
    },
    tooMany(c, context, to) {
      logger.warn("sign-in refused", { why: "too many attempts", requestId: context.requestId });
      const values = { count: ATTEMPTS.burst, seconds: ATTEMPTS.everyMs / 1_000 };
      return show(c, context, { to, fault: "slow", values, status: 429 });
    },
  };
}

const STRANGER = { kind: "anonymous" } as const;

/** Of the page of sign-in, wherever it is shown: its link to the other language leads there. */
function addressOf({ url }: RouteContext, to: string): URL {
  return new URL(to === "/" ? "/sign-in" : `/sign-in?to=${encodeURIComponent(to)}`, url);
}
