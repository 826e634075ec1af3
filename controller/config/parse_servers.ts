import type { Config } from "./config.ts";
import type { Basics } from "./basics.ts";
import type { Reader } from "./reader.ts";
import { baseUrl, headerValue, integer, matching, natsServers } from "./values.ts";

/** A secret that is sent in a header. */
export const HEADER_SECRET = { allowed: "one line of printable ASCII", parse: headerValue };

/** Gitea and our permanent registration there. */
export function giteaOf(reader: Reader, basics: Basics): Config["gitea"] {
  const url = reader.optional("GITEA_URL", {
    allowed: "an http or https URL without user, query and fragment",
    parse: baseUrl(["http", "https"]),
  });
  const whole = {
    allowed: "a whole number of requests per second, 1 to 10000",
    parse: integer(1, 10_000),
  };
  const registration = registrationOf(reader, basics);
  return {
    url,
    registration,
    apiToken: reader.secret("GITEA_API_TOKEN", HEADER_SECRET),
    zombieTimeoutMs: 1000 * reader.value("GITEA_ZOMBIE_TIMEOUT", "600", {
      allowed: "a whole number of seconds, 10 to 604800",
      parse: integer(10, 7 * 24 * 3600),
    }),
    fetchMaxRps: reader.value("FETCH_MAX_RPS", "2", whole),
    heartbeatMaxRps: reader.value("HEARTBEAT_MAX_RPS", "5", whole),
    webhookSecret: reader.secret("GITEA_WEBHOOK_SECRET"),
  };
}

function registrationOf(reader: Reader, { profile }: Basics): Config["gitea"]["registration"] {
  const uuid = reader.optional("GITEA_RUNNER_UUID", {
    allowed: "the UUID of the registration",
    parse: matching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i),
  });
  const token = reader.secret("GITEA_RUNNER_TOKEN", HEADER_SECRET);
  const names = ["GITEA_RUNNER_UUID", "GITEA_RUNNER_TOKEN"] as const;
  const missing = names.filter((name) => !reader.given(name));
  const allowed = "the permanent registration, which `deno task register` makes";
  if (profile === "production" || missing.length === 1) {
    for (const name of missing) reader.fault(name, allowed, `${name} is required`);
  }
  const needsUrl = profile === "production" || missing.length < 2;
  if (needsUrl && !reader.given("GITEA_URL")) {
    reader.fault("GITEA_URL", "base URL of Gitea", "GITEA_URL is required");
  }
  return uuid === null || token === null ? null : { uuid, token };
}

/** JetStream. */
export function natsOf(
  reader: Reader,
  { profile }: Basics,
  readFile: (path: string) => string,
): Config["nats"] {
  const allowed = "nats:// or tls:// URLs separated by commas, without user and password";
  const servers = reader.optional("NATS_URL", { allowed, parse: natsServers });
  if (profile === "production" && !reader.given("NATS_URL")) {
    reader.fault("NATS_URL", allowed, "NATS_URL is required");
  }
  const user = reader.text("NATS_USER");
  const password = reader.secret("NATS_PASSWORD");
  const credsFile = readableFile(reader, "NATS_CREDS_FILE", readFile);
  if (reader.given("NATS_USER") !== reader.given("NATS_PASSWORD")) {
    const name = user === null ? "NATS_USER" : "NATS_PASSWORD";
    reader.fault(name, "both of NATS_USER and NATS_PASSWORD, or none");
  }
  if (credsFile !== null && user !== null) {
    reader.fault("NATS_CREDS_FILE", "unset when NATS_USER is set");
  }
  return {
    servers,
    user,
    password,
    credsFile,
    caFile: readableFile(reader, "NATS_CA_FILE", readFile),
    stream: reader.value("NATS_STREAM", "CI_RUNNER", {
      allowed: "letters, digits, - and _",
      parse: matching(/^[A-Za-z0-9_-]{1,255}$/),
    }),
    subjectBase: reader.value("NATS_SUBJECT_BASE", "ci.assignment", {
      allowed: "words of letters, digits, - and _ joined by dots",
      parse: matching(/^(?=.{1,200}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/),
    }),
  };
}

const ANYTHING = { allowed: "a readable file", good: () => true };

/** A variable that names a file which must be there at start; the file is read later. */
export function readableFile(
  reader: Reader,
  name:
    | "KUBECONFIG"
    | "NATS_CREDS_FILE"
    | "NATS_CA_FILE"
    | "OTEL_EXPORTER_OTLP_CERTIFICATE"
    | "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"
    | "POD_TEMPLATE_FILE",
  readFile: (path: string) => string,
  content: { readonly allowed: string; readonly good: (text: string) => boolean } = ANYTHING,
): string | null {
  return reader.optional(name, {
    allowed: content.allowed,
    parse(path) {
      try {
        return content.good(readFile(path)) ? path : undefined;
      } catch {
        return undefined;
      }
    },
  });
}
