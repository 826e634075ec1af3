import type { BackendName } from "../model/ids.ts";
import type { Config } from "./config.ts";
import type { Basics } from "./basics.ts";
import { HEADER_SECRET, readableFile } from "./parse_servers.ts";
import type { Reader } from "./reader.ts";
import {
  baseUrl,
  dnsLabel,
  dnsName,
  integer,
  matching,
  oneOf,
  spiffeId,
  spiffeVolume,
} from "./values.ts";

/** Far more than one controller is made for: what is above is a typing error. */
const MOST_JOBS = 100_000;
const MONTH_SECONDS = 30 * 24 * 3_600;

/** Which backends are on, and how much they take. */
export function backendsOf(reader: Reader, { components }: Basics): Config["backends"] {
  const one = (name: BackendName, fallback: string) => {
    const prefix = name === "pod" ? "POD" : "VM";
    const whole = (what: string) => ({
      allowed: `a whole number${what}, 0 to ${MOST_JOBS}`,
      parse: integer(0, MOST_JOBS),
    });
    const capacity = reader.value(`${prefix}_CAPACITY`, fallback, whole(" of slots"));
    const pendingLimit = reader.value(
      `${prefix}_PENDING_LIMIT`,
      String(Math.max(20, 2 * capacity)),
      whole(""),
    );
    return { enabled: components.has(`${name}-worker`), capacity, pendingLimit };
  };
  return { pod: one("pod", "4"), vm: one("vm", "1") };
}

/** The Pod backend. */
export function podOf(
  reader: Reader,
  { components, executors }: Basics,
  readFile: (path: string) => string,
): Config["pod"] {
  const image = { allowed: "an image reference", parse: matching(/^[a-zA-Z0-9][^\s\0]{0,500}$/) };
  const agent = {
    allowed: "the SPIFFE ID of the entries' parent, in which {nodeUID} stands for the node's UID",
    parse: spiffeId({ template: true }),
  };
  const needed = executors === "real" && components.has("pod-worker");
  require(reader, needed, "POD_EXECUTOR_IMAGE", image.allowed, "pod-worker");
  require(reader, needed, "SPIRE_AGENT_ID", agent.allowed, "pod-worker");
  return {
    image: reader.optional("POD_EXECUTOR_IMAGE", image),
    serviceAccount: reader.value("POD_SERVICE_ACCOUNT", "gitea-task-executor", {
      allowed: "a service account name",
      parse: dnsName,
    }),
    userId: reader.value("POD_EXECUTOR_UID", "2000", {
      allowed: "a user id, 1 to 2147483646",
      parse: integer(1, 2 ** 31 - 2),
    }),
    templateFile: readableFile(reader, "POD_TEMPLATE_FILE", readFile),
    spiffeVolume: reader.value("POD_SPIFFE_VOLUME", "csi", {
      allowed: "csi, hostPath:<absolute directory> or none",
      parse: spiffeVolume,
    }),
    spireCluster: reader.value("SPIRE_CLUSTER", "homelab", {
      allowed: "a cluster name: letters, digits, dot, - and _",
      parse: matching(/^[A-Za-z0-9._-]{1,253}$/),
    }),
    spireClass: reader.value("SPIRE_CLASS", "spire-mgmt-spire", {
      allowed: "a class name: letters, digits, dot, - and _",
      parse: matching(/^[A-Za-z0-9._-]{1,253}$/),
    }),
    spireAgentId: reader.optional("SPIRE_AGENT_ID", agent),
  };
}

/** The OpenSandbox backend. */
export function vmOf(reader: Reader, { components, executors }: Basics): Config["vm"] {
  const api = {
    allowed: "an http or https URL without user, query and fragment",
    parse: baseUrl(["http", "https"]),
  };
  const needed = executors === "real" && components.has("vm-worker");
  require(reader, needed, "OPENSANDBOX_API", api.allowed, "vm-worker");
  require(reader, needed, "OPENSANDBOX_API_KEY", "the server's API key", "vm-worker");
  return {
    api: reader.optional("OPENSANDBOX_API", api),
    apiKey: reader.secret("OPENSANDBOX_API_KEY", HEADER_SECRET),
    apiKeyFile: reader.secretFile("OPENSANDBOX_API_KEY"),
    pool: reader.value("OPENSANDBOX_POOL", "ci-vm", {
      allowed: "a pool name: at most 63 of a-z, 0-9 and -",
      parse: dnsLabel,
    }),
    timeoutMs: 1000 * reader.value("VM_TIMEOUT_SECONDS", "14400", {
      allowed: `a whole number of seconds, 60 to ${MONTH_SECONDS}`,
      parse: integer(60, MONTH_SECONDS),
    }),
  };
}

/** Label of the VM backend; without its worker it is not looked at. */
export function vmLabelOf(reader: Reader, { components }: Basics): string {
  if (!components.has("vm-worker")) return "vm";
  return reader.value("VM_RUNNER_LABEL", "vm", {
    allowed: "vm or vm-dev",
    parse: oneOf(["vm", "vm-dev"]),
    message: "VM_RUNNER_LABEL must be vm or vm-dev",
  });
}

function require(
  reader: Reader,
  needed: boolean,
  name: "POD_EXECUTOR_IMAGE" | "SPIRE_AGENT_ID" | "OPENSANDBOX_API" | "OPENSANDBOX_API_KEY",
  allowed: string,
  component: "pod-worker" | "vm-worker",
): void {
  if (needed && !reader.given(name)) {
    reader.fault(name, allowed, `${name} is required for ${component}`);
  }
}
