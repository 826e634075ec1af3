import { CALLBACK_PATH } from "../../controller/config/config.ts";
import { refuseMethod } from "../guard.ts";
import { keepLanguage, localeOf } from "../negotiate.ts";
import { problem } from "../problem.ts";
import { seeOther } from "../redirect.ts";
import { createOidcSignIn } from "./oidc_sign_in.ts";
import { ownPath } from "./own_path.ts";
import { readForm } from "./read_form.ts";
import { isProof } from "./sessions.ts";
import { createSignInSteps, type SignIn, type SignInDeps } from "./sign_in_steps.ts";
import { createTokenSignIn } from "./token_sign_in.ts";

/** Paths of sign-in, each with the methods it takes. */
export const SIGN_IN_PATHS: Readonly<Record<string, string>> = {
  "/sign-in": "GET, HEAD, POST",
  "/sign-in/oidc": "GET",
  [CALLBACK_PATH]: "GET",
  "/sign-out": "POST",
};

/** Makes the answer to every path of {@link SIGN_IN_PATHS}. */
export function createSignIn({ access, site, logger: root }: SignInDeps): SignIn {
  const logger = root.child({ component: "access" });
  const deps = { access, site, logger };
  const steps = createSignInSteps(deps);
  const byToken = createTokenSignIn(deps, steps);
  const oidc = createOidcSignIn(deps, steps);

  const signOut: SignIn = async (c, context) => {
    const { headers, requestId } = context;
    const form = await readForm(c.req.raw, { clock: site.clock, requestId });
    if (form instanceof Response) return form;
    const session = access.session.read(headers);
    if (session === undefined) return seeOther("/sign-in", [access.session.cleared]);
    if (!isProof(form.get("csrf"), session.proof)) {
      const detail = 'Sign out on the page itself: the field "csrf" is not of this session';
      return problem(403, { detail, requestId });
    }
    const reach = await access.session.end(headers);
    logger.info("signed out", { actor: session.actor.name, reach });
    if (reach !== "here") return seeOther("/sign-in", [access.session.cleared]);
    const answer = await steps.show(c, context, { to: "/", fault: "here", status: 202 });
    answer.headers.append("set-cookie", access.session.cleared);
    return answer;
  };

  return async (c, context) => {
    const { url, method, requestId } = context;
    const { pathname, searchParams } = url;
    const allow = SIGN_IN_PATHS[pathname] ?? "";
    if (!allow.split(", ").includes(method)) return refuseMethod(method, { requestId, allow });
    if (!access.required) return seeOther("/");
    switch (pathname) {
      case "/sign-out":
        return await signOut(c, context);
      case "/sign-in/oidc":
        return await oidc.start(c, context);
      case CALLBACK_PATH:
        return await oidc.callback(c, context);
      default: {
        if (method === "POST") return await byToken(c, context);
        const chosen = localeOf(searchParams.get("lang"));
        return chosen === undefined
          ? await steps.show(c, context, { to: ownPath(searchParams.get("to")) })
          : keepLanguage(url, chosen);
      }
    }
  };
}
