import type { Listen, SpiffeVolume } from "./config.ts";

/** Pure readers of values: each returns undefined for what it does not understand. */

/** A whole number from `min` up. Signs, decimals, exponents and blanks are refused. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  return (text: string): number | undefined => {
    if (!/^[0-9]{1,16}$/.test(text)) return undefined;
    const value = Number(text);
    return value >= min && value <= max ? value : undefined;
  };
}

/** One of these words. */
export function oneOf<const T extends readonly string[]>(words: T) {
  return (text: string): T[number] | undefined => words.find((word) => word === text);
}

/** Text that matches as a whole. */
export function matching(pattern: RegExp) {
  return (text: string): string | undefined => pattern.test(text) ? text : undefined;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `2h`, `90m`, `1h30m`, `45s`, `500ms` in milliseconds; more than nothing, at most 30 days. */
export function duration(text: string): number | undefined {
  if (!/^([0-9]{1,9}(ms|s|m|h))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, count, unit] of text.matchAll(/([0-9]+)(ms|s|m|h)/g)) {
    total += Number(count) * (UNITS[unit ?? ""] ?? 0);
  }
  return total > 0 && total <= 30 * 24 * 3_600_000 ? total : undefined;
}

/**
 * A base URL with one of these schemes, without user, query and fragment. Only trailing slashes are
 * taken off: the host keeps its spelling, which may matter to others (`127.1`).
 */
export function baseUrl(schemes: readonly string[]) {
  return (text: string): string | undefined => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !schemes.includes(url.protocol.slice(0, -1))) return undefined;
    if (!text.startsWith(`${url.protocol}//`) || url.hostname === "") return undefined;
    if (url.username !== "" || url.password !== "" || /[?#\s\\@]/.test(text)) return undefined;
    return text.replace(/\/+$/, "");
  };
}

/** Comma-separated `nats://` or `tls://` URLs without user, path, query and fragment. */
export function natsServers(text: string): readonly string[] | undefined {
  const servers = text.split(",").map((part) => part.trim());
  const good = servers.every((server) => {
    if (!/^(nats|tls):\/\/[^\s/?#@\\]+\/?$/.test(server)) return false;
    return URL.canParse(server.replace(/^[a-z]+:/, "http:"));
  });
  return good ? servers.map((server) => server.replace(/\/$/, "")) : undefined;
}

/** `host:port`, `:port` (every address: an empty host name) or `[v6]:port`. */
export function listenAddress(text: string): Listen | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]*)):([0-9]{1,5})$/.exec(text);
  if (match === null) return undefined;
  const port = Number(match[3]);
  if (port > 65535) return undefined;
  return { hostname: match[1] ?? match[2] ?? "", port };
}

/** A SPIFFE ID with a path; `template` allows `{nodeUID}` in it. */
export function spiffeId(options: { readonly template?: boolean } = {}) {
  return (text: string): string | undefined => {
    const plain = options.template ? text.replaceAll("{nodeUID}", "x") : text;
    const match = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)+)$/.exec(plain);
    if (match === null || plain.length > 2048) return undefined;
    const dots = match[2]?.split("/").some((segment) => segment === "." || segment === "..");
    return dots ? undefined : text;
  };
}

/** The trust domain of a SPIFFE ID. */
export function trustDomainOf(id: string): string {
  return id.slice("spiffe://".length).split("/")[0] ?? "";
}

/** `unix:///path` or `unix:/path`, as given. */
export function unixSocket(text: string): string | undefined {
  return /^unix:(\/\/)?\/[^/\s\0][^\s\0]*$/.test(text) ? text : undefined;
}

/** `/path`, `unix:///path` or `unix:/path`, as `unix:///path`. */
export function unixSocketOrPath(text: string): string | undefined {
  if (unixSocket(text) === undefined && !/^\/[^/\s\0][^\s\0]*$/.test(text)) return undefined;
  return `unix://${text.replace(/^unix:(\/\/)?/, "")}`;
}

/** `csi`, `hostPath:<absolute directory>` or `none`. */
export function spiffeVolume(text: string): SpiffeVolume | undefined {
  if (text === "csi" || text === "none") return { kind: text };
  const match = /^hostPath:(\/[^\0\s]*)$/.exec(text);
  return match?.[1] === undefined ? undefined : { kind: "host_path", directory: match[1] };
}

/** Comma-separated words. */
export function words(text: string): readonly string[] | undefined {
  const list = text.split(",").map((word) => word.trim()).filter((word) => word !== "");
  return list.every((word) => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(word)) ? list : undefined;
}

/**
 * What an HTTP header can carry: a line of printable ASCII. For secrets that are sent in one: the
 * platform's own complaint would show them.
 */
export const headerValue = matching(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/);

/** A name of DNS labels. */
export const dnsName = matching(
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/,
);

/** One DNS label. */
export const dnsLabel = matching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);

/** True for names and addresses of this machine only. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  return host === "localhost" || host.endsWith(".localhost") || host === "::1" ||
    /^127(\.[0-9]{1,3}){1,3}$/.test(host);
}

/** Host of a URL that was checked before. */
export function hostOf(url: string): string {
  return new URL(url).hostname;
}

/**
 * Headers as OpenTelemetry's variables write them: `name=value`, joined by commas, names and values
 * percent-encoded. Undefined when a part is none, or decodes to what no header may carry.
 */
export function headerList(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = keyValues(text, /^[\x20-\x7e]+$/);
  if (pairs === undefined) return undefined;
  return Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]));
}

/** Resource attributes, written as headers are; values may be of any printable characters. */
export function attributeList(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = keyValues(text, /^[^\p{C}]{1,255}$/u);
  return pairs === undefined || pairs.length > 64 ? undefined : Object.fromEntries(pairs);
}

function keyValues(
  text: string,
  allowed: RegExp,
): readonly (readonly [string, string])[] | undefined {
  const pairs = text.split(",").flatMap((part) => {
    const [, name, encoded] = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(.*?)\s*$/.exec(part) ?? [];
    const value = encoded === undefined ? undefined : percentDecoded(encoded);
    const good = name !== undefined && value !== undefined && allowed.test(value);
    return good ? [[name, value] as const] : [];
  });
  return pairs.length === text.split(",").length ? pairs : undefined;
}

function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
