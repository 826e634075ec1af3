import { GiteaError, type GiteaErrorCode } from "../../controller/gitea.ts";
import { Code, ConnectError } from "../connect/error.ts";

/** What was tried, for the message. */
export interface Attempt {
  /** Completes "Cannot ...", e.g. `fetch a task from`. */
  readonly action: string;
  /** Base URL of Gitea. */
  readonly url: string;
}

/**
 * Gitea's own texts. Every error of its server side comes as HTTP 500, Connect code `unknown`, with
 * the code in words: `rpc error: code = Internal desc = ...`. Measured on 1.26.0 and 1.27.3.
 */
const TEXTS: readonly (readonly [RegExp, GiteaErrorCode])[] = [
  [/unregistered runner|code = Unauthenticated/i, "unauthenticated"],
  [/invalid runner for task/i, "foreign_task"],
  [/resource does not exist/i, "not_found"],
  [/log file has been archived|code = AlreadyExists/i, "log_sealed"],
  [/registration token (not found|has been invalidated)/i, "bad_registration_token"],
  [/message (is )?(too large|larger than)|request body too large/i, "too_large"],
];

/** What to do about it; empty where the state says it all. */
const WAY_OUT: Readonly<Record<GiteaErrorCode, string>> = {
  unauthenticated:
    'GITEA_RUNNER_UUID or GITEA_RUNNER_TOKEN is wrong, or the runner was deleted there: make a registration with "deno task register"',
  foreign_task: "the task belongs to another runner",
  not_found: "",
  log_sealed: "",
  bad_registration_token:
    "take a current registration token from Gitea's page of runners (site, organisation or repository)",
  internal: "see Gitea's log",
  too_large: "raise the limit on request bodies of Gitea or of the proxy in front of it",
  not_gitea:
    "check that GITEA_URL is Gitea's ROOT_URL and that Actions is enabled there ([actions] ENABLED)",
  unavailable: "check GITEA_URL, the network, and that Gitea runs",
};

/** A {@link GiteaError} whose message names the action, the URL, the state and the way out. */
export function giteaError(
  code: GiteaErrorCode,
  attempt: Attempt,
  state: string,
  cause?: unknown,
): GiteaError {
  const wayOut = WAY_OUT[code];
  const message = `Cannot ${attempt.action} Gitea "${attempt.url}": ${state}`;
  return new GiteaError(code, wayOut === "" ? message : `${message}: ${wayOut}`, { cause });
}

/** Judges whatever a call rejected with, aborts of the caller excepted: those are the caller's. */
export function giteaErrorFrom(error: unknown, attempt: Attempt): GiteaError {
  const known = findGiteaError(error);
  if (known !== undefined) return known;
  if (!(error instanceof ConnectError)) {
    return giteaError("unavailable", attempt, transportState(error), error);
  }
  const text = plainText(error.rawMessage);
  const byText = TEXTS.find(([pattern]) => pattern.test(text))?.[1];
  if (byText !== undefined) return giteaError(byText, attempt, text, error);
  switch (error.code) {
    case Code.Unauthenticated:
      return giteaError("unauthenticated", attempt, text, error);
    case Code.ResourceExhausted:
      return giteaError("too_large", attempt, text, error);
    case Code.Unimplemented:
      return giteaError("not_gitea", attempt, text, error);
    case Code.Unavailable:
    case Code.DeadlineExceeded:
    case Code.Canceled:
    case Code.Aborted:
      return giteaError("unavailable", attempt, text, error);
    default:
      // The transport's own failure (refused, reset, DNS, TLS) comes as the cause.
      return error.cause instanceof Error && !(error.cause instanceof ConnectError)
        ? giteaError("unavailable", attempt, transportState(error.cause), error)
        : giteaError("internal", attempt, text, error);
  }
}

/** The response inspector throws a GiteaError; the Connect library wraps it. */
function findGiteaError(error: unknown): GiteaError | undefined {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    if (e instanceof GiteaError) return e;
  }
  return undefined;
}

/** `rpc error: code = Internal desc = pick task: ...` -> `pick task: ...`; one line, bounded. */
function plainText(text: string): string {
  const plain = text.replace(/^rpc error: code = \w+ desc = /, "").replace(/\s+/g, " ").trim();
  return plain === "" ? "no reason given" : plain.slice(0, 500);
}

const TRANSPORT: readonly (readonly [RegExp, string])[] = [
  [/connection refused/i, "connection refused"],
  [/dns error|failed to lookup|name or service not known/i, "the host name does not resolve"],
  [/certificate|tls|ssl|corrupt message/i, "TLS failed"],
  [/connection reset|connection closed|unexpected eof|closed before/i, "connection lost"],
  [/timed out|timeout/i, "timed out"],
];

function transportState(error: unknown): string {
  const text = errorChain(error);
  const known = TRANSPORT.find(([pattern]) => pattern.test(text))?.[1];
  if (known === "TLS failed") return `${known} (${text.slice(0, 300)})`;
  return known ?? `no answer (${text.slice(0, 300)})`;
}

function errorChain(error: unknown): string {
  const texts: string[] = [];
  for (let e = error, depth = 0; e !== undefined && depth < 5; depth++) {
    texts.push(e instanceof Error ? e.message : String(e));
    e = e instanceof Error ? e.cause : undefined;
  }
  return texts.join(": ").replace(/\s+/g, " ");
}
