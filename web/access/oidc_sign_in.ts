import type { Context } from "hono";
import { SignInError } from "../../controller/access/identity_provider.ts";
import { roleOfGroups } from "../../controller/model/role.ts";
import type { WebEnv } from "../env.ts";
import { seeOther } from "../redirect.ts";
import type { RouteContext } from "../route_context.ts";
import { ownPath } from "./own_path.ts";
import type { SignIn, SignInDeps, SignInShown, SignInSteps } from "./sign_in_steps.ts";
import { TRANSACTION_MS } from "./transaction_cookie.ts";

const MAX_NAME = 200;

/**
 * Makes the two answers of a sign-in by OpenID Connect.
 *
 * ```
 * start: cookie of the transaction, 303 --> provider --> callback: session, 303 to where they wanted
 *   | the provider is away: 503                            | no cookie, or it proves nobody: 403
 *   +------------------- the page of sign-in, with a word about it -------------------+
 * ```
 * The transaction is used up by whatever comes back.
 */
export function createOidcSignIn(
  { access, logger }: SignInDeps,
  { show, letIn, tooMany }: SignInSteps,
): { readonly start: SignIn; readonly callback: SignIn } {
  const { provider, transaction } = access;

  const refuse = async (c: Context<WebEnv>, context: RouteContext, shown: SignInShown) => {
    const response = await show(c, context, shown);
    response.headers.append("set-cookie", transaction.cleared);
    return response;
  };
  const fail = (
    c: Context<WebEnv>,
    context: RouteContext,
    { to, error }: { readonly to: string; readonly error: unknown },
  ): Promise<Response> => {
    if (!(error instanceof SignInError)) throw error;
    logger.warn("sign-in refused", { why: error.code, error, requestId: context.requestId });
    const status = error.code === "refused" ? 403 : 503;
    return refuse(c, context, { to, fault: "provider", status });
  };

  return {
    async start(c, context) {
      const to = ownPath(context.url.searchParams.get("to"));
      if (provider === null) return seeOther("/sign-in");
      if (!access.attempts.take(context.peer)) return tooMany(c, context, to);
      try {
        const begun = await provider.identities.start(context.signal);
        return seeOther(begun.url, [transaction.begin({ transaction: begun.transaction, to })]);
      } catch (error) {
        return await fail(c, context, { to, error });
      }
    },
    async callback(c, context) {
      if (provider === null) return seeOther("/sign-in");
      const begun = transaction.read(context.headers);
      if (begun === undefined) {
        const error = new SignInError(
          "refused",
          "Begin again at /sign-in: this browser has begun none within " +
            `${TRANSACTION_MS / 60_000} minutes, or its cookie "${transaction.name}" did not ` +
            "come back",
        );
        return await fail(c, context, { to: "/", error });
      }
      const { to } = begun;
      const { url: { searchParams }, signal } = context;
      try {
        const person = await provider.identities.finish(searchParams, begun.transaction, signal);
        const name = person.name.slice(0, MAX_NAME);
        const role = roleOfGroups(provider.roles, person.groups);
        if (role !== undefined) return await letIn(context, { name, role }, to);
        logger.warn("sign-in refused", { why: "no role", actor: name });
        return await refuse(c, context, { to, fault: "role", values: { name }, status: 403 });
      } catch (error) {
        return await fail(c, context, { to, error });
      }
    },
  };
}
