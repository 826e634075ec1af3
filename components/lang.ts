import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Dict, Plural } from "./i18n/dict.ts";

/** Tags of the languages there are. */
export type Locale = "en" | "zh-CN";

/** A language as a page carries it. */
export interface Lang {
  readonly locale: Locale;
  readonly dict: Dict;
}

/** The page's language; the root of every page provides it. */
export const LangContext = createContext<Lang | null>(null);

/** The page's language. Throws outside of a page. */
export function useLang(): Lang {
  const lang = useContext(LangContext);
  if (lang === null) throw new TypeError("Provide a language around the component");
  return lang;
}

/** Puts values in place of `{name}`; a name without a value stays as it is. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The form of a counting text for `n`, with `{n}` filled in. */
export function plural(lang: Lang, text: Plural, n: number): string {
  return fill(n === 1 ? text.one : text.other, { n: number(lang, n) });
}

/** A whole number as the language writes it. */
export function number(lang: Lang, n: number): string {
  return new Intl.NumberFormat(lang.locale).format(n);
}

/** Milliseconds as at most two units: `640 ms`, `1.8 s`, `3 m 12 s`, `2 h 05 m`, `3 d 4 h`. */
export function duration(lang: Lang, ms: number): string {
  const { units } = lang.dict;
  const say = (text: string, n: number | string) => fill(text, { n });
  const rounded = Math.max(0, Math.round(ms));
  if (rounded < 1000) return say(units.ms, rounded);
  if (rounded < 9950) return say(units.s, (rounded / 1000).toFixed(1));
  return coarse(lang, rounded);
}

/** Like {@link duration}, whole seconds only: for what ticks. */
export function coarse(lang: Lang, ms: number): string {
  const { units } = lang.dict;
  const say = (text: string, n: number | string) => fill(text, { n });
  const two = (n: number) => String(n).padStart(2, "0");
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return say(units.s, s);
  const m = Math.floor(s / 60);
  if (m < 60) return `${say(units.m, m)} ${say(units.s, two(s % 60))}`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${say(units.h, h)} ${say(units.m, two(m % 60))}`;
  return `${say(units.d, Math.floor(h / 24))} ${say(units.h, h % 24)}`;
}

/** `12:03:04` of an RFC 3339 UTC time, with the date before it when that is not the day of `now`. */
export function clockTime(iso: string, now: number): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const text = at.toISOString();
  const sameDay = text.slice(0, 10) === new Date(now).toISOString().slice(0, 10);
  return sameDay ? text.slice(11, 19) : `${text.slice(5, 10)} ${text.slice(11, 19)}`;
}
