import type { Context } from "hono";
import { type ComponentChild, h } from "preact";
import { AbsentPage, FailedPage, RefusedPage } from "../components/ErrorPages.tsx";
import type { IslandName } from "../components/islands.ts";
import type { Dict } from "../components/i18n/dict.ts";
import type { Lang } from "../components/lang.ts";
import type { Clock } from "../lib/clock.ts";
import type { Assets } from "./assets.ts";
import type { PageRoute } from "./define.ts";
import type { RouteContext } from "./route_context.ts";
import { renderDocument } from "./document.tsx";
import { createNonce } from "./headers.ts";
import { keepLanguage, langOf, localeOf, wantsJson } from "./negotiate.ts";
import { problem } from "./problem.ts";
import type { WebEnv } from "./env.ts";

/** What is the same for every page. */
export interface Site {
  readonly version: string;
  readonly assets: Promise<Assets>;
  readonly clock: Clock;
}

/** Answers a page route: HTML, or JSON of the same data; `?lang=` is kept in a cookie. */
export async function respondPage(
  route: PageRoute,
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
): Promise<Response> {
  const chosen = localeOf(context.url.searchParams.get("lang"));
  if (chosen !== undefined) return keepLanguage(context.url, chosen);
  const answer = await route.load(context);
  switch (answer.kind) {
    case "bad":
      return problem(400, { detail: answer.detail, requestId: context.requestId });
    case "absent":
      return respondAbsent(c, context, site, answer.detail);
    case "found": {
      const { json, data, island, title, body } = answer.data;
      if (!wantsJson(context.headers)) return html(c, context, site, { data, island, title, body });
      return new Response(JSON.stringify(json), {
        headers: { "content-type": "application/json", "cache-control": "no-store", vary: VARY },
      });
    }
    default:
      return answer satisfies never;
  }
}

/** 404 as a page for people and as a problem for machines. */
export function respondAbsent(
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
  detail: string = `Check the address: "${context.url.pathname.slice(0, 200)}" is not here`,
): Promise<Response> | Response {
  if (isMachine(context)) return problem(404, { detail, requestId: context.requestId });
  return html(c, context, site, plain("absent", () => h(AbsentPage, {})), 404);
}

/** 500 (or 503) as a page for people and as a problem for machines; the log alone says what it was. */
export function respondFailed(
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
  status = 500,
): Promise<Response> | Response {
  const { requestId } = context;
  if (isMachine(context)) {
    return problem(status, { detail: `Look for request "${requestId}" in the log`, requestId });
  }
  return html(c, context, site, plain("failed", () => h(FailedPage, { requestId })), status);
}

/** An action of a form that was not taken, as a page for people and as a problem for machines. */
export function respondRefused(
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
  refusal: {
    readonly status: number;
    readonly detail: string;
    readonly current?: unknown;
    /** Where to look again. */
    readonly back: string;
  },
): Promise<Response> | Response {
  const { status, detail, back, current = null } = refusal;
  const { requestId } = context;
  if (isMachine(context)) return problem(status, { detail, requestId, extra: { current } });
  const body = () => h(RefusedPage, { detail, current, back });
  return html(c, context, site, plain("refused", body), status);
}

/** A page of its own making, that rests. */
export function respondPlain(
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
  page: {
    readonly title: (lang: Lang) => string;
    readonly body: () => ComponentChild;
    readonly status: number;
  },
): Promise<Response> {
  const { title, body, status } = page;
  return html(c, context, site, { title, body, data: null, island: null }, status);
}

const VARY = "Accept, Accept-Language, Cookie";

interface Content {
  readonly title: (lang: Lang) => string;
  readonly body: () => ComponentChild;
  readonly data: unknown;
  readonly island: IslandName | null;
}

function plain(name: "absent" | "failed" | "refused", body: () => ComponentChild): Content {
  const titleIn = (dict: Dict) => dict[name].title;
  return { title: ({ dict }) => titleIn(dict), body, data: null, island: null };
}

async function html(
  c: Context<WebEnv>,
  context: RouteContext,
  site: Site,
  content: Content,
  status = 200,
): Promise<Response> {
  const assets = await site.assets;
  const lang = langOf(context.headers);
  const nonce = createNonce();
  c.set("nonce", nonce);
  const text = renderDocument({
    lang,
    nonce,
    title: content.title(lang),
    body: content.body,
    data: content.data,
    now: context.now,
    version: site.version,
    // A stranger is told nothing of what runs here.
    backends: context.visitor.kind === "anonymous"
      ? []
      : context.views.backends().map(({ name }) => name),
    visitor: context.visitor,
    path: context.url.pathname + context.url.search,
    style: assets.style,
    script: content.island === null ? null : assets.script(content.island),
  });
  return new Response(text, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-language": lang.locale,
      "cache-control": "no-store",
      vary: VARY,
    },
  });
}

/** True when the caller is a program: it gets problems, not pages. */
export function isMachine({ url, headers }: Pick<RouteContext, "url" | "headers">): boolean {
  // Prometheus takes */* as well: a page of sign-in is nothing that it could read.
  return url.pathname.startsWith("/api/") || url.pathname === "/metrics" || wantsJson(headers);
}
