import { en } from "../components/i18n/en.ts";
import { zh } from "../components/i18n/zh.ts";
import type { Lang, Locale } from "../components/lang.ts";
import { cookieHeader, readCookie } from "./cookies.ts";
import { seeOther } from "./redirect.ts";

const LANGS: Readonly<Record<Locale, Lang>> = {
  "en": { locale: "en", dict: en },
  "zh-CN": { locale: "zh-CN", dict: zh },
};

/** Name of the cookie with the language. */
const LANG_COOKIE = "lang";
const YEAR_SECONDS = 31_536_000;

/** The language named by a tag, e.g. of `?lang=` or a cookie; undefined if there is none such. */
export function localeOf(tag: string | null | undefined): Locale | undefined {
  if (tag === "en" || tag === "zh-CN") return tag;
  return undefined;
}

/** Language of a request: its cookie, else the best of `Accept-Language`, else English. */
export function langOf(headers: Headers): Lang {
  const chosen = localeOf(readCookie(headers, LANG_COOKIE));
  return LANGS[chosen ?? preferred(headers.get("accept-language") ?? "")];
}

function preferred(header: string): Locale {
  const ranges = header.slice(0, 500).split(",").map((part) => {
    const [tag = "", ...parameters] = part.trim().toLowerCase().split(";");
    const q = parameters.map((text) => /^\s*q=([0-9.]+)$/.exec(text)?.[1]).find((v) => v);
    return { tag, q: q === undefined ? 1 : Number(q) };
  });
  for (const { tag, q } of ranges.sort((a, b) => b.q - a.q)) {
    if (!(q > 0)) continue;
    if (tag === "zh" || tag.startsWith("zh-")) return "zh-CN";
    if (tag === "en" || tag.startsWith("en-")) return "en";
  }
  return "en";
}

/** True when the caller wants JSON rather than a page: it names JSON, and HTML not before it. */
export function wantsJson(headers: Headers): boolean {
  const accept = headers.get("accept") ?? "";
  const json = accept.search(/application\/(problem\+)?json/);
  const html = accept.indexOf("text/html");
  return json >= 0 && (html < 0 || json < html);
}

/** Keeps the choice and goes to the same page without it. Only a preference: no effect on anything else. */
export function keepLanguage(url: URL, chosen: string): Response {
  const query = new URLSearchParams(url.searchParams);
  query.delete("lang");
  // One slash only: "//host" would lead elsewhere.
  const path = `/${url.pathname.replace(/^\/+/, "")}`;
  return seeOther(query.size === 0 ? path : `${path}?${query}`, [
    cookieHeader(LANG_COOKIE, chosen, { secure: false, maxAgeSeconds: YEAR_SECONDS }),
  ]);
}
