import type { Context } from "hono";
import { h } from "preact";
import { type SignInFault, SignInPage } from "../../components/SignInPage.tsx";
import { SignOnError, type SignOnTransaction } from "../../controller/access/sign_on.ts";
import { CALLBACK_PATH } from "../../controller/config/parse_access.ts";
import { roleOfGroups } from "../../controller/model/role.ts";
import type { Actor } from "../../controller/actions/operation.ts";
import { isObject } from "../../lib/json_object.ts";
import type { Logger } from "../../lib/logger.ts";
import type { RouteContext } from "../route_context.ts";
import type { WebEnv } from "../env.ts";
import { refuseMethod } from "../guard.ts";
import { keepLanguage, localeOf } from "../negotiate.ts";
import { respondPlain, type Site } from "../pages.ts";
import { problem } from "../problem.ts";
import { readBody } from "../read_body.ts";
import { type Access, ATTEMPTS, isProof } from "./access.ts";
import { cookieHeader, readCookie } from "./cookies.ts";
import { ownPath } from "./own_path.ts";
import { SESSION_MS } from "./sessions.ts";

/** People need no longer at their provider. */
const TRANSACTION_MS = 600_000;
const MAX_BODY = 8_192;
const MAX_NAME = 200;

/** Paths of sign-in, each with the methods it takes. */
export const SIGN_IN_PATHS: Readonly<Record<string, string>> = {
  "/sign-in": "GET, HEAD, POST",
  "/sign-in/oidc": "GET",
  [CALLBACK_PATH]: "GET",
  "/sign-out": "POST",
};

/** Answers the paths of sign-in. */
export type SignIn = (c: Context<WebEnv>, context: RouteContext) => Promise<Response>;

/** Makes {@link SignIn}. Rejects never but for faults of this program. */
export function createSignIn(
  deps: { readonly access: Access; readonly site: Site; readonly logger: Logger },
): SignIn {
  const { access, site } = deps;
  const { secure, sessionCookie, transactionCookie } = access;
  const logger = deps.logger.child({ component: "access" });
  const provider = access.rules.oidc === null ? null : new URL(access.rules.oidc.issuer).host;

  const show = (
    c: Context<WebEnv>,
    context: RouteContext,
    { to, fault = null, values = {}, status = 200 }: {
      readonly to: string;
      readonly fault?: SignInFault | null;
      readonly values?: Readonly<Record<string, string | number>>;
      readonly status?: number;
    },
  ) =>
    respondPlain(c, { ...context, url: addressOf(context, to), visitor: STRANGER }, site, {
      title: ({ dict }) => dict.signIn.title,
      body: () => h(SignInPage, { to, provider, tokens: access.tokens, fault, values }),
      status,
    });

  /** Each sign-in has a session of its own; the one before ends. */
  const begin = async (headers: Headers, actor: Actor, to: string): Promise<Response> => {
    const before = readCookie(headers, sessionCookie);
    if (before !== undefined) await access.sessions.end(before);
    const maxAgeSeconds = SESSION_MS / 1_000;
    const cookie = cookieHeader(sessionCookie, access.sessions.begin(actor), {
      secure,
      maxAgeSeconds,
    });
    const response = leadTo(to, [cookie, gone(transactionCookie)]);
    logger.info("signed in", { actor: actor.name, role: actor.role });
    return response;
  };
  const slow = (c: Context<WebEnv>, context: RouteContext, to: string) => {
    logger.warn("sign-in refused", { why: "too many attempts", requestId: context.requestId });
    const values = { count: ATTEMPTS.burst, seconds: ATTEMPTS.everyMs / 1_000 };
    return show(c, context, { to, fault: "slow", values, status: 429 });
  };
  const gone = (name: string) => cookieHeader(name, "", { secure, maxAgeSeconds: 0 });

  const byToken = async (c: Context<WebEnv>, context: RouteContext): Promise<Response> => {
    const form = await readForm(c, context, site);
    if (form instanceof Response) return form;
    const to = ownPath(form.get("to"));
    if (!access.attempts.take(context.peer)) return slow(c, context, to);
    const actor = access.bearer(form.get("token")?.trim() ?? "");
    if (actor !== undefined) return await begin(context.headers, actor, to);
    logger.warn("sign-in refused", { why: "unknown token", requestId: context.requestId });
    return show(c, context, { to, fault: "token", status: 401 });
  };

  const leave = async (c: Context<WebEnv>, context: RouteContext): Promise<Response> => {
    const to = ownPath(context.url.searchParams.get("to"));
    if (access.signOn === null) return leadTo("/sign-in");
    if (!access.attempts.take(context.peer)) return slow(c, context, to);
    try {
      const { url, transaction } = await access.signOn.start(context.signal);
      const endsAt = site.clock.now() + TRANSACTION_MS;
      const sealed = access.seal.seal("sign-in", { ...transaction, to, endsAt });
      return leadTo(url, [
        cookieHeader(transactionCookie, sealed, { secure, maxAgeSeconds: TRANSACTION_MS / 1_000 }),
      ]);
    } catch (error) {
      return failed(c, context, { to, error });
    }
  };

  const comeBack = async (c: Context<WebEnv>, context: RouteContext): Promise<Response> => {
    const sealed = readCookie(context.headers, transactionCookie);
    const known = sealed === undefined
      ? undefined
      : readTransaction(access.seal.open("sign-in", sealed), site.clock.now());
    const { rules, signOn } = access;
    if (signOn === null || rules.oidc === null) return leadTo("/sign-in");
    if (known === undefined) {
      const error = new SignOnError(
        "refused",
        "Begin again at /sign-in: this browser has begun none within " +
          `${
            TRANSACTION_MS / 60_000
          } minutes, or its cookie "${transactionCookie}" did not come back`,
      );
      return failed(c, context, { to: "/", error });
    }
    const { to, transaction } = known;
    try {
      const { name, groups } = await signOn.finish(
        context.url.searchParams,
        transaction,
        context.signal,
      );
      const role = roleOfGroups(rules.oidc.roles, groups);
      if (role !== undefined) {
        return await begin(context.headers, { name: name.slice(0, MAX_NAME), role }, to);
      }
      const who = name.slice(0, MAX_NAME);
      logger.warn("sign-in refused", { why: "no role", actor: who });
      const values = { name: who };
      return withCookie(await show(c, context, { to, fault: "role", values, status: 403 }));
    } catch (error) {
      return failed(c, context, { to, error });
    }
  };

  /** Whatever came back is used up. */
  const withCookie = (response: Response): Response => {
    response.headers.append("set-cookie", gone(transactionCookie));
    return response;
  };

  const failed = async (
    c: Context<WebEnv>,
    context: RouteContext,
    { to, error }: { readonly to: string; readonly error: unknown },
  ): Promise<Response> => {
    if (!(error instanceof SignOnError)) throw error;
    logger.warn("sign-in refused", { why: error.code, error, requestId: context.requestId });
    const status = error.code === "refused" ? 403 : 503;
    return withCookie(await show(c, context, { to, fault: "provider", status }));
  };

  const signOut = async (c: Context<WebEnv>, context: RouteContext): Promise<Response> => {
    const form = await readForm(c, context, site);
    if (form instanceof Response) return form;
    const cookie = readCookie(context.headers, sessionCookie);
    const session = cookie === undefined ? undefined : access.sessions.read(cookie);
    if (cookie !== undefined && session !== undefined) {
      if (!isProof(form.get("csrf"), session.proof)) {
        const detail = 'Sign out on the page itself: the field "csrf" is not of this session';
        return problem(403, { detail, requestId: context.requestId });
      }
      const reach = await access.sessions.end(cookie);
      logger.info("signed out", { actor: session.actor.name, reach });
      if (reach === "here") {
        const answer = await show(c, context, { to: "/", fault: "here", status: 202 });
        answer.headers.append("set-cookie", gone(sessionCookie));
        return answer;
      }
    }
    return leadTo("/sign-in", [gone(sessionCookie)]);
  };

  return (c, context) => {
    const { pathname, searchParams } = context.url;
    const allow = SIGN_IN_PATHS[pathname] ?? "";
    const { method, requestId } = context;
    if (!allow.split(", ").includes(method)) {
      return Promise.resolve(refuseMethod(method, { requestId, allow }));
    }
    if (!access.required) return Promise.resolve(leadTo("/"));
    switch (pathname) {
      case "/sign-out":
        return signOut(c, context);
      case "/sign-in/oidc":
        return leave(c, context);
      case CALLBACK_PATH:
        return comeBack(c, context);
      default: {
        if (method === "POST") return byToken(c, context);
        const chosen = localeOf(searchParams.get("lang"));
        return chosen === undefined
          ? Promise.resolve(show(c, context, { to: ownPath(searchParams.get("to")) }))
          : Promise.resolve(keepLanguage(context.url, chosen));
      }
    }
  };
}

async function readForm(
  c: Context<WebEnv>,
  { requestId, headers }: RouteContext,
  { clock }: Site,
): Promise<URLSearchParams | Response> {
  const type = (headers.get("content-type") ?? "").split(";", 1).join("").trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded") {
    const detail = `Send the body as application/x-www-form-urlencoded: it is "${
      type.slice(0, 100)
    }"`;
    return problem(415, { detail, requestId });
  }
  const read = await readBody(c.req.raw, { maxBytes: MAX_BODY, clock, requestId });
  return read.kind === "refused"
    ? read.response
    : new URLSearchParams(new TextDecoder().decode(read.bytes));
}

function readTransaction(
  json: unknown,
  now: number,
): { readonly to: string; readonly transaction: SignOnTransaction } | undefined {
  if (!isObject(json)) return undefined;
  const { state, nonce, verifier, to, endsAt } = json;
  if (typeof state !== "string" || typeof nonce !== "string" || typeof verifier !== "string") {
    return undefined;
  }
  if (typeof to !== "string" || typeof endsAt !== "number" || endsAt <= now) return undefined;
  return { to: ownPath(to), transaction: { state, nonce, verifier } };
}

const STRANGER = { kind: "anonymous" } as const;

/** Of the page of sign-in, wherever it is shown: its link to the other language leads there. */
function addressOf({ url }: RouteContext, to: string): URL {
  return new URL(to === "/" ? "/sign-in" : `/sign-in?to=${encodeURIComponent(to)}`, url);
}

function leadTo(location: string, cookies: readonly string[] = []): Response {
  const headers = new Headers({ location, "cache-control": "no-store" });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}
