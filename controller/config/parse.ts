import { adminOf, leaderOf, logOf } from "./parse_admin.ts";
import { backendsOf, podOf, vmLabelOf, vmOf } from "./parse_backends.ts";
import { kubernetesOf } from "./parse_kubernetes.ts";
import { giteaOf, natsOf } from "./parse_servers.ts";
import { capabilityKeysOf, facadeOf, spiffeOf } from "./parse_identity.ts";
import { tracesOf } from "./parse_traces.ts";
import type { Basics } from "./basics.ts";
import type { Component, Config } from "./config.ts";
import { createReader, type Fault, type Reader } from "./reader.ts";
import { unknownVariables } from "./unknown.ts";
import { dnsLabel, dnsName, duration, hostOf, isLoopback, oneOf, words } from "./values.ts";

/** What parsing needs of the machine. */
export interface Machine {
  /** Reads a text file; throws when it cannot. */
  readonly readFile: (path: string) => string;
  /** Name of this machine, for `HOSTNAME` where no leader is elected. */
  readonly hostname: string;
  /** True when this process may give each process executor a user of its own. */
  readonly isRoot: boolean;
  /** True when a person reads the log: stderr is a terminal. */
  readonly isTerminal?: boolean;
}

/** The configuration, or everything that is wrong with it. `warnings` are sentences for people. */
export type Parsed =
  | { readonly kind: "ok"; readonly config: Config; readonly warnings: readonly string[] }
  | {
    readonly kind: "faults";
    readonly faults: readonly Fault[];
    readonly warnings: readonly string[];
  };

const COMPONENTS = ["scheduler", "pod-worker", "vm-worker"] as const;
const REAL_PARTS = [
  "NATS_URL",
  "SPIFFE_ENDPOINT_SOCKET",
  "POD_EXECUTOR_IMAGE",
  "OPENSANDBOX_API",
] as const;

/** Reads the configuration from environment variables; reports all faults at once. */
export function parseConfig(
  env: Readonly<Record<string, string | undefined>>,
  machine: Machine,
): Parsed {
  const reader = createReader(env, machine.readFile);
  const given = REAL_PARTS.filter((name) => reader.given(name));
  const profile = reader.value("PROFILE", given.length > 0 ? "production" : "embedded", {
    allowed: "embedded or production",
    parse: oneOf(["embedded", "production"]),
  });
  const executors = reader.value("EXECUTORS", profile === "embedded" ? "process" : "real", {
    allowed: "process or real",
    parse: oneOf(["process", "real"]),
  });
  const basics: Basics = { profile, executors, components: componentsOf(reader) };
  const gitea = giteaOf(reader, basics);
  const backends = backendsOf(reader, basics);
  const leader = leaderOf(reader, basics, machine.hostname);
  const config: Omit<Config, "effective"> = {
    profile,
    executors,
    allowUnisolated: unisolatedOf(reader, basics, { giteaUrl: gitea.url, isRoot: machine.isRoot }),
    runnerBin: reader.text("CI_RUNNER_BIN"),
    components: basics.components,
    gitea,
    nats: natsOf(reader, basics, machine.readFile),
    ...identityOf(reader, basics),
    capabilityKeys: capabilityKeysOf(reader, basics),
    backends,
    pod: podOf(reader, basics, machine.readFile),
    vm: vmOf(reader, basics),
    vmLabel: vmLabelOf(reader, basics),
    defaultBackend: defaultBackendOf(reader, backends),
    namespace: reader.value("POD_NAMESPACE", "gitea-actions", {
      allowed: "a namespace name",
      parse: dnsLabel,
    }),
    metadataPrefix: reader.value("METADATA_PREFIX", "ci.ddupan.top", {
      allowed: "a DNS name in lower case",
      parse: dnsName,
    }),
    executorCapabilities: reader.optional("EXECUTOR_CAPABILITIES", {
      allowed: "words separated by commas",
      parse: words,
    }) ?? [],
    ...leader,
    kubernetes: kubernetesOf(reader, { ...basics, ...leader }, machine.readFile),
    maxWaitMs: reader.value("MAX_WAIT", "2h", {
      allowed: "a duration such as 2h, 90m or 1h30m, at most 720h",
      parse: duration,
    }),
    stateDir: reader.value("STATE_DIR", ".state", {
      allowed: "a directory",
      parse: (text) => text.includes("\0") ? undefined : text.replace(/(.)\/+$/, "$1"),
    }),
    admin: adminOf(reader, basics),
    traces: tracesOf(reader, machine.readFile),
    log: logOf(reader, { profile, isTerminal: machine.isTerminal ?? false }),
  };
  const warnings = unknownVariables(Object.keys(env));
  if (reader.faults.length > 0) {
    const hints = given.length === 0 || reader.given("PROFILE") ? [] : [inferred(given)];
    return { kind: "faults", faults: reader.faults, warnings: [...hints, ...warnings] };
  }
  const effective = Object.freeze({ ...reader.effective });
  return { kind: "ok", config: deepFreeze({ ...config, effective }), warnings };
}

/** Said to who wanted one part of their own and is asked for all of them. */
function inferred(given: readonly string[]): string {
  return `PROFILE is production because ${given.join(" and ")} ${
    given.length > 1 ? "are" : "is"
  } ` +
    "set; with PROFILE=embedded what is missing is supplied on this machine";
}

function componentsOf(reader: Reader): ReadonlySet<Component> {
  const allowed = "a comma-separated list of scheduler, pod-worker and vm-worker";
  const components = reader.value("COMPONENTS", COMPONENTS.join(","), {
    allowed,
    parse(text) {
      const parts = text.split(",").map((part) => part.trim()).filter((part) => part !== "");
      const known = parts.flatMap((part) => COMPONENTS.filter((name) => name === part));
      return known.length > 0 && known.length === parts.length
        ? new Set<Component>(known)
        : undefined;
    },
  });
  if (!components.has("scheduler")) {
    reader.fault(
      "COMPONENTS",
      allowed,
      "COMPONENTS must include scheduler: workers need its registry of claims",
    );
  }
  return components;
}

function identityOf(reader: Reader, basics: Basics): Pick<Config, "spiffe" | "facade"> {
  const spiffe = spiffeOf(reader, basics);
  return { spiffe, facade: facadeOf(reader, basics, spiffe.trustDomain) };
}

function unisolatedOf(
  reader: Reader,
  { executors }: Basics,
  { giteaUrl, isRoot }: { readonly giteaUrl: string | null; readonly isRoot: boolean },
): boolean {
  const allowed = "yes, or unset";
  const answer = reader.optional("ALLOW_UNISOLATED", { allowed, parse: oneOf(["yes", "no"]) });
  const local = giteaUrl === null || isLoopback(hostOf(giteaUrl));
  if (executors === "process" && !local && answer !== "yes") {
    const whose = isRoot ? "unisolated users of this machine" : "this program's own user";
    reader.fault(
      "ALLOW_UNISOLATED",
      allowed,
      `ALLOW_UNISOLATED=yes is required for EXECUTORS=process with a Gitea that is not on loopback: its jobs would run as ${whose}`,
    );
  }
  return answer === "yes";
}

function defaultBackendOf(reader: Reader, backends: Config["backends"]): Config["defaultBackend"] {
  const allowed = "pod or vm, with its worker in COMPONENTS";
  const name = reader.optional("DEFAULT_BACKEND", { allowed, parse: oneOf(["pod", "vm"]) });
  if (name !== null && !backends[name].enabled) reader.fault("DEFAULT_BACKEND", allowed);
  return name;
}

/** Freezes plain objects and arrays all the way down; Sets and Secrets guard themselves by type. */
function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value)) {
    const plain = Array.isArray(part) ||
      (typeof part === "object" && part !== null &&
        Object.getPrototypeOf(part) === Object.prototype);
    if (plain) deepFreeze(part);
  }
  return Object.freeze(value);
}
