/**
 * Text from outside (Gitea, Kubernetes, job output) made harmless to look at. HTML is escaped where
 * it is drawn; this is for what escaping leaves alone: control characters and terminal escapes become
 * visible signs, and characters that turn the reading direction or hide text are spelled out.
 */
export function inert(text: string, maxLength = 2000): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  return cut.replace(DANGEROUS, show).replace(LONE_SURROGATE, "\ufffd");
}

/** C0 and C1 but tab and line feed, bidirectional controls, zero width, tags, line separators. */
const DANGEROUS =
  // deno-lint-ignore no-control-regex -- these are what it looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

const LONE_SURROGATE = /\p{Surrogate}/gu;

function show(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  // Caret notation, as terminals print it; every font has it.
  if (code < 0x20) return `^${String.fromCodePoint(code + 0x40)}`;
  if (code === 0x7f) return "^?";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The URL if a page may link to it: http or https, without credentials; undefined otherwise. */
export function safeLink(url: string | null): URL | undefined {
  if (url === null || !URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  const web = parsed.protocol === "https:" || parsed.protocol === "http:";
  return web && parsed.username === "" && parsed.password === "" ? parsed : undefined;
}
