import type { Secret } from "../../lib/secret.ts";
import type { BackendName } from "../model/ids.ts";

/** Parts that a process runs. */
export type Component = "scheduler" | "pod-worker" | "vm-worker";

/**
 * The resolved configuration: frozen, complete, checked. In the embedded profile the parts that are
 * `null` are supplied on this machine by `embedded/`.
 */
export interface Config {
  readonly profile: "embedded" | "production";
  readonly executors: "process" | "real";
  readonly components: ReadonlySet<Component>;
  readonly gitea: {
    /** Base URL without trailing slash; null = the sample forge. */
    readonly url: string | null;
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
    /** Null = the development trust domain. */
    readonly endpointSocket: string | null;
    /** Admin socket of a SPIRE server, for process executors with real SPIRE; null otherwise. */
    readonly spireServerSocket: string | null;
    /** SPIFFE ID that entries made through `spireServerSocket` hang below. */
    readonly spireParentId: string | null;
  };
  readonly facade: {
    readonly listen: { readonly hostname: string; readonly port: number };
    readonly url: string | null;
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
  /** `vm` or `vm-dev`. */
  readonly vmLabel: string;
  readonly defaultBackend: BackendName | null;
  readonly namespace: string;
  readonly metadataPrefix: string;
  readonly executorCapabilities: readonly string[];
  readonly leaderElection: "kubernetes" | "none";
  readonly hostname: string;
  readonly maxWaitMs: number;
  readonly stateDir: string;
  readonly admin: {
    readonly listen: { readonly hostname: string; readonly port: number };
    readonly health: { readonly hostname: string; readonly port: number } | null;
    readonly publicUrl: string | null;
  };
  readonly log: { readonly level: "debug" | "info" | "warn" | "error"; readonly format: "json" | "pretty" };
  /** Every variable as understood, secrets replaced by `[secret]`, for `/api/v1/config`. */
  readonly effective: Readonly<Record<string, string | null>>;
}
