import { duration, useLang } from "./lang.ts";

/** Time from one moment to another. */
export function Took({ from, to }: { from: string; to: string }) {
  const lang = useLang();
  return <span class="num">{duration(lang, Date.parse(to) - Date.parse(from))}</span>;
}
