import { type AssignmentId, parseAssignmentId } from "../controller/model/ids.ts";
import { parseTraceparent, type SpanContext } from "../controller/traces/trace_context.ts";
import { Secret } from "../lib/secret.ts";

/** The launch environment (docs/architecture.md, "Between gate and facade"), parsed. */
export interface Launch {
  readonly assignment: AssignmentId;
  /** Proves to the facade which assignment this executor was made for. */
  readonly capability: Secret;
  /** The SVID must carry exactly this id. */
  readonly spiffeId: string;
  /** Where the facade listens, without a trailing slash. */
  readonly facadeUrl: string;
  /** Whom the gate must meet there. */
  readonly facadeSpiffeId: string;
  /** Gitea's own URL exactly as jobs must see it, without a trailing slash. */
  readonly giteaUrl: string;
  /** Workload API, `unix:///path` or `unix:/path`. */
  readonly endpoint: string;
  /** The runner: a path, or a name on PATH; further words are arguments before the gate's own. */
  readonly runner: readonly string[];
  /** From SIGTERM to the kill by whoever sent it, ms. */
  readonly graceMs: number;
  /** The trace of the assignment; undefined when there is none, or it cannot be read. */
  readonly trace: SpanContext | undefined;
}

/** Variables that no step may see: the runner is started without them. */
export const HIDDEN_VARIABLES = [
  "CI_ASSIGNMENT_ID",
  "CI_RUNNER_CAPABILITY",
  "RUNNER_FACADE_URL",
  "RUNNER_FACADE_SPIFFE_ID",
  "GITEA_URL",
  "CI_RUNNER_BIN",
  "CI_GRACE_SECONDS",
  "DENO_DIR",
  "DENO_NO_UPDATE_CHECK",
  "DENO_TLS_CA_STORE",
] as const;

/** A parsed launch environment, or everything that is wrong with it. */
export type LaunchResult =
  | { readonly kind: "launch"; readonly launch: Launch }
  | { readonly kind: "faults"; readonly faults: readonly string[] };

/** Reads the launch environment. All faults are reported together; the capability is never quoted. */
export function parseLaunch(env: Readonly<Record<string, string | undefined>>): LaunchResult {
  const faults: string[] = [];
  const read = <T>(name: string, allowed: string, parse: (text: string) => T | undefined): T => {
    const text = env[name] ?? "";
    const value = text === "" ? undefined : parse(text);
    const given = name === "CI_RUNNER_CAPABILITY" ? "a value of another form" : `"${text}"`;
    if (value === undefined) {
      faults.push(`Read ${name}: ${text === "" ? "not set" : given}; allowed: ${allowed}`);
    }
    // Never used when there are faults.
    return value as T;
  };
  const launch: Launch = {
    assignment: read("CI_ASSIGNMENT_ID", "gitea-task-<task id>", parseAssignmentId),
    capability: read("CI_RUNNER_CAPABILITY", "printable characters without spaces", (text) => {
      return /^[\x21-\x7e]{16,1024}$/.test(text) ? new Secret(text) : undefined;
    }),
    spiffeId: read("CI_SPIFFE_ID", "spiffe://<trust domain>/<path>", spiffeId),
    facadeUrl: read("RUNNER_FACADE_URL", "https://host:port", (text) => baseUrl(text, ["https:"])),
    facadeSpiffeId: read("RUNNER_FACADE_SPIFFE_ID", "spiffe://<trust domain>/<path>", spiffeId),
    giteaUrl: read("GITEA_URL", "http:// or https:// URL without query", (text) => {
      return baseUrl(text, ["http:", "https:"]);
    }),
    endpoint: read("SPIFFE_ENDPOINT_SOCKET", "unix:///path or unix:/path", (text) => {
      return /^unix:\/(\/\/)?[^/]/.test(text) ? text : undefined;
    }),
    runner: runnerCommand(env["CI_RUNNER_BIN"]),
    graceMs: env["CI_GRACE_SECONDS"] === undefined ? 120_000 : 1000 *
      read("CI_GRACE_SECONDS", "whole seconds from 1 to 86400", (text) => {
        const seconds = /^\d{1,5}$/.test(text) ? Number(text) : 0;
        return seconds >= 1 && seconds <= 86_400 ? seconds : undefined;
      }),
    trace: parseTraceparent(env["TRACEPARENT"] ?? ""),
  };
  return faults.length === 0 ? { kind: "launch", launch } : { kind: "faults", faults };
}

/** A JSON array of words, or one path or name; `gitea-runner` when not given. */
function runnerCommand(text: string | undefined): readonly string[] {
  if (text === undefined || text === "") return ["gitea-runner"];
  if (!text.startsWith("[")) return [text];
  try {
    const words: unknown = JSON.parse(text);
    if (
      Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string")
    ) {
      return words;
    }
  } catch {
    // A path may begin with a bracket, too.
  }
  return [text];
}

function spiffeId(text: string): string | undefined {
  return /^spiffe:\/\/[a-z0-9._-]+(\/[A-Za-z0-9._-]+)+$/.test(text) ? text : undefined;
}

/** The text itself, not the URL parser's spelling: jobs compare it with what Gitea says. */
function baseUrl(text: string, protocols: readonly string[]): string | undefined {
  const url = URL.parse(text);
  if (url === null || !protocols.includes(url.protocol)) return undefined;
  if (url.username !== "" || url.search !== "" || url.hash !== "") return undefined;
  return text.replace(/\/+$/, "");
}
