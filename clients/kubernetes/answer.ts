import { objectOrEmpty } from "../../lib/json_object.ts";
import { oneLine } from "../../lib/one_line.ts";
import type { Failure } from "./error.ts";

/** An HTTP answer, whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Longest wait that a server's Retry-After can bring about, milliseconds. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Names of what a server or proxy says with a number alone; the same as the API server's own
 * (apimachinery's `NewGenericServerResponse`).
 */
const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  406: "NotAcceptable",
  409: "Conflict",
  410: "Gone",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** What an answer with a status outside 200-299 says. */
export function failureOfAnswer({ status, headers, text }: Answer): Failure {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // A proxy's page, or a plain sentence.
  }
  const said = failureOfStatus(body);
  return {
    status,
    reason: said.reason === "" ? REASONS[status] ?? "Unknown" : said.reason,
    detail: said.detail !== "" ? said.detail : oneLine(text, 500) || "no reason given",
    retryAfterMs: retryAfter(headers.get("retry-after")) ?? said.retryAfterMs,
  };
}

/** What an object of kind `Status` says: the body of a refusal, or an ERROR event of a watch. */
export function failureOfStatus(body: unknown): Failure {
  const { code, reason, message, details } = objectOrEmpty(body);
  const status = typeof code === "number" ? code : 0;
  return {
    status,
    reason: typeof reason === "string" && reason !== "" ? oneLine(reason, 80) : "",
    detail: typeof message === "string" ? oneLine(message, 500) : "",
    retryAfterMs: retryAfter(objectOrEmpty(details).retryAfterSeconds),
  };
}

/** Seconds, as number or text, to milliseconds; null for none. Dates are not used by API servers. */
function retryAfter(seconds: unknown): number | null {
  const number = typeof seconds === "string" && /^\d+$/.test(seconds.trim())
    ? Number(seconds)
    : seconds;
  if (typeof number !== "number" || !(number > 0)) return null;
  return Math.min(number * 1000, MAX_RETRY_AFTER_MS);
}

/** What a request that got no whole answer says: refused, reset, DNS, TLS. */
export function failureOfTransport(error: unknown): Failure {
  const texts: string[] = [];
  for (let e = error, depth = 0; e !== undefined && e !== null && depth < 5; depth++) {
    texts.push(e instanceof Error ? e.message : String(e));
    e = e instanceof Error ? e.cause : undefined;
  }
  const text = texts.join(": ");
  const known = TRANSPORT.find(([pattern]) => pattern.test(text))?.[1];
  const detail = known === undefined || known === TLS
    ? `${known ?? "no answer"} (${oneLine(text, 300)})`
    : known;
  return { status: 0, reason: "Unreachable", detail, retryAfterMs: null };
}

/** True when the server's certificate was not accepted: perhaps there is a new CA. */
export function isCertificateFailure(error: unknown): boolean {
  return failureOfTransport(error).detail.startsWith(TLS);
}

const TLS = "TLS failed";
const TRANSPORT: readonly (readonly [RegExp, string])[] = [
  [/connection refused/i, "connection refused"],
  [/dns error|failed to lookup|name or service not known/i, "the host name does not resolve"],
  [/certificate|tls|ssl|corrupt message/i, TLS],
  [
    /connection reset|connection closed|unexpected eof|closed before|broken pipe/i,
    "connection lost",
  ],
  [/error reading a body|body error/i, "the answer broke off"],
  [/timed out|timeout/i, "timed out"],
];
