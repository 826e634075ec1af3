import { ownPath } from "./own_path.ts";
import { readForm } from "./read_form.ts";
import type { SignIn, SignInDeps, SignInSteps } from "./sign_in_steps.ts";

/** Makes the answer to the form with a token: a session, or the page again. */
export function createTokenSignIn(
  { access, site, logger }: SignInDeps,
  { show, letIn, tooMany }: SignInSteps,
): SignIn {
  return async (c, context) => {
    const { requestId, peer } = context;
    const form = await readForm(c.req.raw, { clock: site.clock, requestId });
    if (form instanceof Response) return form;
    const to = ownPath(form.get("to"));
    if (!access.attempts.take(peer)) return tooMany(c, context, to);
    const actor = access.bearer(form.get("token")?.trim() ?? "");
    if (actor !== undefined) return await letIn(context, actor, to);
    logger.warn("sign-in refused", { why: "unknown token", requestId });
    return show(c, context, { to, fault: "token", status: 401 });
  };
}
