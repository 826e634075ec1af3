import { NatsError } from "nats";
import { QueueError } from "../../controller/queue.ts";
import { NoGreeting } from "./greeting_bound.ts";

/** Which files an attempt to connect depends on. */
export interface Files {
  readonly servers: readonly string[];
  readonly credsFile: string | null;
  readonly caFile: string | null;
}

const HOPELESS: Readonly<Record<string, string>> = {
  AUTHORIZATION_VIOLATION:
    "the server refuses the credentials; check NATS_USER, NATS_PASSWORD and NATS_CREDS_FILE",
  BAD_AUTHENTICATION: "no usable credentials; check NATS_USER, NATS_PASSWORD and NATS_CREDS_FILE",
  BAD_CREDS: "the credentials file cannot be used; check NATS_CREDS_FILE",
  ACCOUNT_EXPIRED: "the account has expired; renew it and NATS_CREDS_FILE",
  AUTHENTICATION_EXPIRED: "the credentials have expired; renew NATS_CREDS_FILE",
  SERVER_OPT_NA: "the server does not offer what is asked of it (TLS); check NATS_URL",
  NATS_PROTOCOL_ERR: "the server does not speak our NATS protocol; check NATS_URL",
};

/** Why a connect failed: `refused` (trying again cannot help) or `unavailable`. Names no secret. */
export function connectFailure(error: unknown, files: Files): QueueError {
  if (error instanceof QueueError) return error;
  const where = `Connect to NATS at "${files.servers.map(withoutPassword).join(", ")}"`;
  const refused = (why: string) =>
    new QueueError("refused", `${where}: ${why}`, { retryable: false, cause: error });
  if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied) {
    return refused(
      `${fileOf(error, files)} cannot be read; check NATS_CREDS_FILE and NATS_CA_FILE`,
    );
  }
  const code = codeOf(error);
  const known = HOPELESS[code];
  if (known !== undefined) return refused(known);
  if (isCertificateProblem(code, textOf(error))) {
    return refused(`the server's certificate is not trusted (${code}); check NATS_CA_FILE`);
  }
  if (error instanceof Error && /creds|seed|jwt/i.test(error.message)) {
    return refused("the credentials file cannot be used; check NATS_CREDS_FILE");
  }
  const why = isStranger(error)
    ? "what answers there is no NATS server; check NATS_URL"
    : `no answer (${code})`;
  return new QueueError("unavailable", `${where}: ${why}`, { cause: error });
}

/** Not final: it may be the page of a proxy whose server is away. */
function isStranger(error: unknown): boolean {
  return error instanceof NoGreeting || error instanceof SyntaxError ||
    error instanceof Error && error.message === "unexpected response from server";
}

/** Without user information, for messages. */
function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//");
}

function codeOf(error: unknown): string {
  if (error instanceof NatsError) return error.code;
  if (typeof error === "object" && error !== null && "code" in error) return String(error.code);
  return error instanceof Error ? error.name : "unknown";
}

function textOf(error: unknown): string {
  const cause = error instanceof NatsError ? error.chainedError : undefined;
  return `${error instanceof Error ? error.message : ""} ${cause?.message ?? ""}`;
}

function isCertificateProblem(code: string, text: string): boolean {
  return code === "TLS" ||
    /^(UNABLE_TO_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_|ERR_SSL)/.test(code) ||
    /certificate|self.signed|UnknownIssuer|NotValidForName/i.test(text);
}

function fileOf(error: Error, files: Files): string {
  const named = [files.credsFile, files.caFile]
    .filter((path): path is string => path !== null)
    .find((path) => error.message.includes(path));
  return `file "${
    named ?? [files.credsFile, files.caFile].filter((p) => p !== null).join('" or "')
  }"`;
}
