import { Secret } from "../../lib/secret.ts";
import type { Config } from "./config.ts";
import type { Basics } from "./basics.ts";
import type { Reader } from "./reader.ts";
import {
  baseUrl,
  listenAddress,
  matching,
  spiffeId,
  trustDomainOf,
  unixSocket,
  unixSocketOrPath,
} from "./values.ts";

/** Trust domain of the embedded profile: a name that no real one may have. */
const EMBEDDED_TRUST_DOMAIN = "gdr.invalid";
const MIN_KEY_BYTES = 32;

/** SPIFFE: trust domain, Workload API and, for process executors, a SPIRE server. */
export function spiffeOf(reader: Reader, { profile, executors }: Basics): Config["spiffe"] {
  const endpointSocket = reader.optional("SPIFFE_ENDPOINT_SOCKET", {
    allowed: "unix:///path or unix:/path",
    parse: unixSocket,
  });
  const real = profile === "production" || executors === "real" ||
    reader.given("SPIFFE_ENDPOINT_SOCKET");
  const trustDomain = {
    allowed: "a trust domain name: a-z, 0-9, dot, - and _",
    parse: matching(/^[a-z0-9._-]{1,255}$/),
  };
  if (real && !reader.given("TRUST_DOMAIN")) {
    reader.fault("TRUST_DOMAIN", trustDomain.allowed, "TRUST_DOMAIN is required");
  }
  return {
    trustDomain: real
      ? reader.optional("TRUST_DOMAIN", trustDomain) ?? ""
      : reader.value("TRUST_DOMAIN", EMBEDDED_TRUST_DOMAIN, trustDomain),
    endpointSocket,
    ...spireServerOf(reader, executors),
  };
}

/**
 * Process executors below a real SPIRE agent need somebody to make their entries: this program
 * does, through the server's admin socket.
 */
function spireServerOf(
  reader: Reader,
  executors: Config["executors"],
): Pick<Config["spiffe"], "spireServerSocket" | "spireParentId"> {
  const socket = { allowed: "unix:///path of a SPIRE server's API", parse: unixSocketOrPath };
  const parent = { allowed: "the SPIFFE ID of the SPIRE agent on this machine", parse: spiffeId() };
  const spireServerSocket = reader.optional("SPIRE_SERVER_SOCKET", socket);
  const spireParentId = reader.optional("SPIRE_PARENT_ID", parent);
  const needed = executors === "process" && reader.given("SPIFFE_ENDPOINT_SOCKET");
  const rules = { SPIRE_SERVER_SOCKET: socket.allowed, SPIRE_PARENT_ID: parent.allowed } as const;
  for (const name of ["SPIRE_SERVER_SOCKET", "SPIRE_PARENT_ID"] as const) {
    if (needed && !reader.given(name)) {
      const why = "is required for process executors with SPIFFE_ENDPOINT_SOCKET";
      reader.fault(name, rules[name], `${name} ${why}`);
    }
    if (!needed && reader.given(name)) {
      reader.fault(name, "unset but for process executors with SPIFFE_ENDPOINT_SOCKET");
    }
  }
  return { spireServerSocket, spireParentId };
}

/** The facade that executors dial. */
export function facadeOf(
  reader: Reader,
  { profile, executors }: Basics,
  trustDomain: string,
): Config["facade"] {
  const embedded = profile === "embedded" && executors === "process";
  const names = ["SPIFFE_ENDPOINT_SOCKET", "RUNNER_FACADE_URL", "RUNNER_FACADE_SPIFFE_ID"] as const;
  const missing = names.filter((name) => !reader.given(name));
  if (!embedded && missing.length > 0) {
    reader.missing(
      missing,
      "the Workload API's socket, the URL that executors dial, the SPIFFE ID they must meet there",
      "SPIFFE_ENDPOINT_SOCKET, RUNNER_FACADE_URL, and RUNNER_FACADE_SPIFFE_ID are required",
    );
  }
  const inDomain = trustDomain === "" ? "" : ` in the trust domain ${trustDomain}`;
  return {
    listen: reader.value("RUNNER_FACADE_LISTEN", embedded ? "127.0.0.1:0" : ":8443", {
      allowed: "host:port or :port",
      parse: listenAddress,
    }),
    url: reader.optional("RUNNER_FACADE_URL", {
      allowed: "an https URL without user, query and fragment",
      parse: baseUrl(["https"]),
    }),
    spiffeId: reader.optional("RUNNER_FACADE_SPIFFE_ID", {
      allowed: `a SPIFFE ID${inDomain}`,
      parse(text) {
        const id = spiffeId()(text);
        const foreign = id !== undefined && trustDomain !== "" && trustDomainOf(id) !== trustDomain;
        return foreign ? undefined : id;
      },
    }),
  };
}

/** Keys of capabilities and sealing. */
export function capabilityKeysOf(reader: Reader, { profile }: Basics): Config["capabilityKeys"] {
  const allowed =
    `a key of ${MIN_KEY_BYTES} bytes or more; further ones, separated by commas, only verify`;
  if (profile === "production" && !reader.given("CAPABILITY_KEY")) {
    reader.fault("CAPABILITY_KEY", allowed, "CAPABILITY_KEY is required");
  }
  return reader.optional("CAPABILITY_KEY", {
    allowed,
    parse(text) {
      const keys = text.split(",").map((key) => key.trim());
      const bytes = (key: string) => new TextEncoder().encode(key).length;
      return keys.every((key) => bytes(key) >= MIN_KEY_BYTES)
        ? keys.map((key) => new Secret(key))
        : undefined;
    },
  });
}
