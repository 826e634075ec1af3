import type { Secret } from "../../lib/secret.ts";
import type { BackendName } from "../model/ids.ts";
import type { Role, RoleRule } from "../model/role.ts";

/** Parts that a process runs. */
export type Component = "scheduler" | "pod-worker" | "vm-worker";

/** Where a server listens; port 0 = any free one. */
export interface Listen {
  /** Empty: every address, IPv6 and IPv4. */
  readonly hostname: string;
  readonly port: number;
}

/** How Pods see the Workload API. */
export type SpiffeVolume =
  | { readonly kind: "csi" }
  | { readonly kind: "host_path"; readonly directory: string }
  | { readonly kind: "none" };

/** How to reach the API server of Kubernetes. */
export type KubernetesAccess =
  /** The current context of a kubeconfig file. */
  | { readonly kind: "kubeconfig"; readonly path: string }
  /** The service account of this Pod; `directory` holds `token` and `ca.crt`. */
  | {
    readonly kind: "service_account";
    readonly host: string;
    readonly port: number;
    readonly directory: string;
  };

/** A bearer token that is let in: its hash, never itself. */
export interface TokenRule {
  readonly name: string;
  readonly role: Role;
  /** SHA-256 of the token, in lower-case hexadecimal. */
  readonly sha256: string;
}

/** Who may look and act. Without tokens and provider: everybody on this machine, and nobody else. */
export interface AccessRules {
  readonly tokens: readonly TokenRule[];
  readonly oidc: {
    readonly issuer: string;
    readonly clientId: string;
    /** Null = a public client, by PKCE alone. */
    readonly clientSecret: Secret | null;
    readonly roles: readonly RoleRule[];
    /** What the provider must send browsers back to, exactly. */
    readonly redirectUri: string;
  } | null;
}

/** Where the provider sends browsers back to, below `ADMIN_PUBLIC_URL`. */
export const CALLBACK_PATH = "/sign-in/callback";

/**
 * The resolved configuration: frozen, complete, checked. In the embedded profile the parts that are
 * `null` are supplied on this machine by `embedded/`.
 */
export interface Config {
  readonly profile: "embedded" | "production";
  readonly executors: "process" | "real";
  /** Process executors of a Gitea that is not on this machine are allowed. */
  readonly allowUnisolated: boolean;
  /** Official runner for process executors; null = the one on PATH, or the sample runner. */
  readonly runnerBin: string | null;
  readonly components: ReadonlySet<Component>;
  readonly gitea: {
    /** Base URL without trailing slash, otherwise spelled as given; null = the sample forge. */
    readonly url: string | null;
    /** Null (embedded only) = the one kept in `stateDir`. */
    readonly registration: { readonly uuid: string; readonly token: Secret } | null;
    readonly apiToken: Secret | null;
    readonly zombieTimeoutMs: number;
    readonly fetchMaxRps: number;
    readonly heartbeatMaxRps: number;
    readonly webhookSecret: Secret | null;
  };
  readonly nats: {
    /** Null = a child nats-server. */
    readonly servers: readonly string[] | null;
    readonly user: string | null;
    readonly password: Secret | null;
    readonly credsFile: string | null;
    readonly caFile: string | null;
    readonly stream: string;
    readonly subjectBase: string;
  };
  readonly spiffe: {
    readonly trustDomain: string;
    /** `unix:/...` as given; null = the development trust domain. */
    readonly endpointSocket: string | null;
    /**
     * Admin socket of a SPIRE server (`unix:///...`), for process executors with real SPIRE; null
     * otherwise.
     */
    readonly spireServerSocket: string | null;
    /** SPIFFE ID that entries made through `spireServerSocket` hang below. */
    readonly spireParentId: string | null;
  };
  readonly facade: {
    readonly listen: Listen;
    /** Null (embedded only) = made from the port that is listened on. */
    readonly url: string | null;
    /** Null (embedded only) = the ID of this process's own SVID. */
    readonly spiffeId: string | null;
  };
  /** First key signs and seals; the others only verify and open. Null = made and kept in `stateDir`. */
  readonly capabilityKeys: readonly Secret[] | null;
  readonly backends: Readonly<
    Record<
      BackendName,
      { readonly enabled: boolean; readonly capacity: number; readonly pendingLimit: number }
    >
  >;
  /** What only the Pod backend needs; strings are null where they are not required or not set. */
  readonly pod: {
    readonly image: string | null;
    readonly serviceAccount: string;
    readonly userId: number;
    readonly templateFile: string | null;
    readonly spiffeVolume: SpiffeVolume;
    readonly spireCluster: string;
    readonly spireClass: string;
    readonly spireAgentId: string | null;
  };
  /** What only the OpenSandbox backend needs. */
  readonly vm: {
    readonly api: string | null;
    readonly apiKey: Secret | null;
    /** Where the key was read and may be read again; null when it was given as it is. */
    readonly apiKeyFile: string | null;
    readonly pool: string;
    readonly timeoutMs: number;
  };
  /** `vm` or `vm-dev`. */
  readonly vmLabel: string;
  readonly defaultBackend: BackendName | null;
  readonly namespace: string;
  readonly metadataPrefix: string;
  readonly executorCapabilities: readonly string[];
  readonly leaderElection: "kubernetes" | "none";
  /** Null where neither Pods nor the election need it. */
  readonly kubernetes: KubernetesAccess | null;
  readonly hostname: string;
  readonly maxWaitMs: number;
  readonly stateDir: string;
  readonly admin: {
    readonly listen: Listen;
    /** Null = on the dashboard's port only. */
    readonly health: Listen | null;
    readonly publicUrl: string | null;
    readonly access: AccessRules;
    readonly advertise: string | null;
  };
  /** An OTLP receiver of traces; null = traces are not made. */
  readonly traces: {
    /** Whole URL. */
    readonly endpoint: string;
    /** As given: `name=value`, joined by commas; see `headerList`. Later ones win. */
    readonly headers: readonly Secret[];
    /** Whom to trust in place of the system's authorities. */
    readonly caFile: string | null;
    readonly serviceName: string;
    /** What else is said of this installation. */
    readonly attributes: Readonly<Record<string, string>>;
  } | null;
  readonly log: {
    readonly level: "debug" | "info" | "warn" | "error";
    readonly format: "json" | "pretty";
  };
  /** Every variable as understood, secrets replaced by `[secret]`, for `/api/v1/config`. */
  readonly effective: Readonly<Record<string, string | null>>;
}
