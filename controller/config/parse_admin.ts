import type { Config } from "./config.ts";
import type { Basics } from "./basics.ts";
import { accessOf } from "./parse_access.ts";
import type { Reader } from "./reader.ts";
import { baseUrl, isLoopback, listenAddress, matching, oneOf } from "./values.ts";

/** Dashboard, API and health. */
export function adminOf(reader: Reader, { profile }: Basics): Config["admin"] {
  const address = { allowed: "host:port or :port", parse: listenAddress };
  const listen = reader.value("ADMIN_LISTEN", "127.0.0.1:8080", address);
  const { publicUrl, access } = accessOf(reader);
  const mayLeave = reader.given("ADMIN_TOKENS") || reader.given("OIDC_ISSUER");
  if (!isLoopback(listen.hostname) && !mayLeave) {
    reader.fault(
      "ADMIN_LISTEN",
      "a loopback address such as 127.0.0.1:8080 while nothing says who may look",
      "ADMIN_LISTEN must be on loopback without ADMIN_TOKENS and OIDC_ISSUER: nothing says who may look; set one of them",
    );
  }
  const embedded = profile === "embedded" && !reader.given("HEALTH_LISTEN");
  return {
    listen,
    health: embedded ? null : reader.value("HEALTH_LISTEN", ":8081", address),
    publicUrl,
    access,
    advertise: reader.optional("ADMIN_ADVERTISE", {
      allowed: "host:port, or an http or https URL",
      parse: (text) => baseUrl(["http", "https"])(text) ?? (listenAddress(text) && text),
    }),
  };
}

/** Who leads, and under which name this process contends. */
export function leaderOf(
  reader: Reader,
  { profile, components }: Basics,
  machineName: string,
): Pick<Config, "leaderElection" | "hostname"> {
  const leaderElection = reader.value(
    "LEADER_ELECTION",
    profile === "embedded" ? "none" : "kubernetes",
    { allowed: "kubernetes or none", parse: oneOf(["kubernetes", "none"]) },
  );
  const name = { allowed: "a host name", parse: matching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/) };
  const hostname = reader.optional("HOSTNAME", name);
  if (leaderElection === "kubernetes" && components.has("scheduler") && !reader.given("HOSTNAME")) {
    reader.fault("HOSTNAME", name.allowed, "HOSTNAME is required for scheduler leader election");
  }
  return { leaderElection, hostname: hostname ?? machineName };
}

/** The log; for people where one sits at the terminal of an embedded profile. */
export function logOf(
  reader: Reader,
  { profile, isTerminal }: { readonly profile: Config["profile"]; readonly isTerminal: boolean },
): Config["log"] {
  return {
    level: reader.value("LOG_LEVEL", "info", {
      allowed: "debug, info, warn or error",
      parse: oneOf(["debug", "info", "warn", "error"]),
    }),
    format: reader.value("LOG_FORMAT", profile === "embedded" && isTerminal ? "pretty" : "json", {
      allowed: "json or pretty",
      parse: oneOf(["json", "pretty"]),
    }),
  };
}
