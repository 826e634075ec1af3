import type { Call } from "../../controller/backend.ts";
import type { Pod } from "./pod.ts";

/** A Kubernetes object as it is sent: plain JSON. */
export type Manifest = Readonly<Record<string, unknown>>;

/** What {@link ExecutorCluster.watchPods} tells. */
export type PodChange =
  /** Everything that matches now: at the start, and after changes were missed. */
  | { readonly kind: "all"; readonly pods: readonly Pod[] }
  | { readonly kind: "changed"; readonly pod: Pod }
  /** Deleted, or without the labels from now on; as it was last. */
  | { readonly kind: "removed"; readonly pod: Pod };

/** `spec` of a ClusterStaticEntry (`spire.spiffe.io/v1alpha1`), the fields that we set. */
export interface EntrySpec {
  readonly spiffeID: string;
  readonly parentID: string;
  /** `type:value`. */
  readonly selectors: readonly string[];
  readonly className: string;
  /**
   * A Go duration. One that cannot be parsed passes the CRD and stops spire-controller-manager from
   * reading any entry of the cluster.
   */
  readonly x509SVIDTTL: string;
}

/** A ClusterStaticEntry to be made. */
export interface NewEntry {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: EntrySpec;
}

/** A ClusterStaticEntry as it is there. */
export interface IdentityEntry {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of another than the expected form: whatever could be read. */
  readonly spec: Readonly<Partial<EntrySpec>>;
  /** spire-controller-manager has looked at it. */
  readonly rendered: boolean;
  /** Another entry says the same, and SPIRE has only that one. */
  readonly masked: boolean;
}

/** A Kubernetes Event about a Pod. */
export interface PodEvent {
  readonly type: "Normal" | "Warning";
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/**
 * What the Pod backend needs of a cluster. Pods and events are those of one namespace. Every method
 * throws {@link ClusterError}; aborting the signal rejects with the signal's reason. Lists are
 * consistent (never out of a cache) and complete.
 */
export interface ExecutorCluster {
  /** Pods with all these labels. */
  listPods(labels: Readonly<Record<string, string>>, call: Call): Promise<Pod[]>;
  /**
   * Pods with all these labels, from now on. Reconnects by itself; ends when the signal aborts. The
   * first change is `all`.
   */
  watchPods(labels: Readonly<Record<string, string>>, call: Call): AsyncIterable<PodChange>;
  /** Undefined when there is none. */
  getPod(name: string, call: Call): Promise<Pod | undefined>;
  /** Makes the Pod; unknown fields are refused, not dropped. */
  createPod(manifest: Manifest, call: Call): Promise<Pod>;
  /**
   * Asks for the end of exactly this Pod. Resolves to the Pod as it then is, or undefined when it is
   * gone. Codes `not_found`; `conflict` when the name has another UID.
   */
  deletePod(
    pod: { readonly name: string; readonly uid: string; readonly graceSeconds: number | null },
    call: Call,
  ): Promise<Pod | undefined>;
  /**
   * Sets labels of exactly this Pod. Codes `not_found`; `conflict` when the name has another UID, or
   * others change the Pod too fast.
   */
  labelPod(
    pod: {
      readonly name: string;
      readonly uid: string;
      readonly labels: Readonly<Record<string, string>>;
    },
    call: Call,
  ): Promise<void>;
  /** Entries with all these labels, of the whole cluster. */
  listEntries(labels: Readonly<Record<string, string>>, call: Call): Promise<IdentityEntry[]>;
  /** Undefined when there is none. */
  getEntry(name: string, call: Call): Promise<IdentityEntry | undefined>;
  /** Code `already_exists` when the name is taken. */
  createEntry(entry: NewEntry, call: Call): Promise<void>;
  /** Deletes exactly this one. Codes `not_found`; `conflict` when the name has another UID. */
  deleteEntry(entry: { readonly name: string; readonly uid: string }, call: Call): Promise<void>;
  /** UID of a Node; undefined when there is none of that name. */
  nodeUid(name: string, call: Call): Promise<string | undefined>;
  /** Events about one Pod that are still kept, the newest last; at most a hundred. */
  listPodEvents(
    pod: { readonly name: string; readonly uid: string },
    call: Call,
  ): Promise<PodEvent[]>;
  /** Writes an event about a Pod, which may be gone. */
  emitPodEvent(
    pod: { readonly name: string; readonly uid: string },
    event: PodEvent,
    call: Call,
  ): Promise<void>;
}

/** Codes of {@link ClusterError}; those of the API server by its `reason`, not by its status alone. */
export type ClusterErrorCode =
  | "not_found"
  | "already_exists"
  /** A precondition on UID or version does not hold. */
  | "conflict"
  /** 403: RBAC, quota, Pod Security, a namespace that is being deleted. */
  | "forbidden"
  | "unauthorized"
  /** 400 or 422: what was sent cannot be right. */
  | "invalid"
  /** 429: surely not done; try later. */
  | "throttled"
  /** No answer, or a 5xx: it may have been done. */
  | "unknown_outcome";

/** The cluster said no, or did not answer. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
  /** What kind of no. */
  readonly code: ClusterErrorCode;

  /** `message`: the API server's own words, or what happened to the connection. */
  constructor(code: ClusterErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}
