import { SandboxError, type SandboxErrorCode } from "../../backends/vm/sandboxes.ts";
import { errorText } from "../../lib/error_text.ts";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";
import { oneLine } from "../../lib/one_line.ts";

/** An HTTP answer, whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Longest wait that a server's Retry-After can bring about, milliseconds. */
const MAX_RETRY_AFTER_MS = 300_000;
/** Between our clock and the server's; answers take their time, and `Date` has whole seconds. */
const SAME_CLOCK_MS = 5_000;

/**
 * What an answer that is no success says. The server has two shapes (measured on 1.1.1): its own
 * `{"code","message"}`, and FastAPI's `{"detail"}`, a sentence or a list of what does not fit. A proxy
 * on the way has a third, which may be nothing at all: that is a failure like any other. `hide` takes the
 * API key out of words that quote the request; `now`: milliseconds since the epoch.
 */
export function failureOfAnswer(
  { status, headers, text }: Answer,
  { now, hide }: { readonly now: number; hide(text: string): string },
): SandboxError {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // A proxy's page, or nothing.
  }
  const { code: named, message, detail } = objectOrEmpty(body);
  const code = typeof named === "string" ? oneLine(named, 80) : "";
  const said = typeof message === "string" ? oneLine(message, 400) : detailOf(detail);
  const words = said !== "" ? said : code === "" ? oneLine(text, 200) || "no reason given" : "";
  const sentence = [`the server answered ${status}`, code, words].filter((part) => part !== "")
    .join(": ");
  const failure = codeOf(status, code);
  const way = wayOut(failure, status, code);
  return new SandboxError(
    failure,
    way === "" ? hide(sentence) : `${hide(sentence.replace(/\.$/, ""))}: ${way}`,
    { retryAfterMs: retryAfter(headers, now) },
  );
}

/** How far the server's clock is ahead of ours, milliseconds; 0 when that is little, or not told. */
export function clockAhead(headers: Headers, now: number): number {
  const told = Date.parse(headers.get("date") ?? "");
  const ahead = told + 500 - now;
  return Number.isNaN(told) || Math.abs(ahead) < SAME_CLOCK_MS ? 0 : ahead;
}

/** What a request that got no whole answer says. Only what never left is `unreachable`. */
export function failureOfTransport(error: unknown, hide: (text: string) => string): SandboxError {
  const text = hide(errorText(error));
  const unsent = UNSENT.find(([pattern]) => pattern.test(text))?.[1];
  if (unsent !== undefined) return new SandboxError("unreachable", unsent);
  if (text.includes(CONNECTING)) {
    return new SandboxError("unreachable", `no connection (${oneLine(text, 200)}): ${LOOK}`);
  }
  return new SandboxError("unknown_outcome", `connection lost (${oneLine(text, 200)})`);
}

/** An answer that no Lifecycle API gives. */
export function malformed(what: string): SandboxError {
  const message = `the answer is not one of OpenSandbox's Lifecycle API (${what})`;
  return new SandboxError("unknown_outcome", message);
}

/** By the server's own code first: the status alone could be a proxy's. */
function codeOf(status: number, code: string): SandboxErrorCode {
  const known = CODES.find(([ending]) => code.endsWith(ending));
  if (known !== undefined) return known[1];
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 429) return "throttled";
  if (status === 408 || status >= 500 || status < 400) return "unknown_outcome";
  return "invalid";
}

const CODES: readonly (readonly [string, SandboxErrorCode])[] = [
  ["::POOL_CAPACITY_EXHAUSTED", "pool_full"],
  ["::POOL_NOT_FOUND", "pool_missing"],
  ["::POOL_NOT_SUPPORTED", "pool_missing"],
  ["::UNSUPPORTED_POOL_REF", "pool_missing"],
  ["::QUOTA_EXCEEDED", "quota"],
  ["::POD_READY_TIMEOUT", "start_timeout"],
  ["::POD_FAILED", "start_failed"],
];

/** What the platform's HTTP client says of a connection that did not come about: nothing was sent. */
const CONNECTING = "client error (Connect)";
const LOOK = "check OPENSANDBOX_API, the network, and that the server runs";

const UNSENT: readonly (readonly [RegExp, string])[] = [
  [/connection refused/i, `connection refused: ${LOOK}`],
  [
    /dns error|failed to lookup|name or service not known/i,
    "the host name does not resolve: check OPENSANDBOX_API and the DNS",
  ],
  [/no route to host|network is unreachable/i, `no route to the server: ${LOOK}`],
  [
    /invalid peer certificate|certificate verify failed/i,
    "the certificate is not trusted: name the file of its CA in DENO_CERT, or check OPENSANDBOX_API",
  ],
  [
    /received corrupt message/i,
    "the server does not speak TLS: does OPENSANDBOX_API begin with http:// ?",
  ],
];

/** What FastAPI finds wrong: `body.metadata: Input should be ...; ...`. What was sent is not repeated. */
function detailOf(detail: unknown): string {
  if (typeof detail === "string") return oneLine(detail, 400);
  if (!Array.isArray(detail)) return "";
  const faults = detail.filter(isObject).map(({ loc, msg }) => {
    const where = Array.isArray(loc) ? loc.map(String).join(".") : "";
    return `${where}: ${String(msg)}`;
  });
  return oneLine(faults.join("; "), 400);
}

/** Milliseconds; null for none, and for what is neither seconds nor a date. A date is of the server's clock. */
function retryAfter(headers: Headers, now: number): number | null {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Math.min(Number(text) * 1000, MAX_RETRY_AFTER_MS);
  const at = /^[A-Z][a-z]+, .+ GMT$/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(at)) return null;
  const from = Date.parse(headers.get("date") ?? "");
  return Math.min(Math.max(0, at - (Number.isNaN(from) ? now : from)), MAX_RETRY_AFTER_MS);
}

function wayOut(failure: SandboxErrorCode, status: number, code: string): string {
  if (failure === "pool_missing") return "check OPENSANDBOX_POOL";
  if (failure === "quota") return "raise the quota of the sandboxes' namespace";
  if (status >= 300 && status < 400) return "give OPENSANDBOX_API the address that it points to";
  if (failure !== "unauthorized") return "";
  // Without a code of OpenSandbox's own it may be another server that answered.
  return code === ""
    ? "check OPENSANDBOX_API_KEY, and that OPENSANDBOX_API leads to OpenSandbox"
    : "check OPENSANDBOX_API_KEY";
}
