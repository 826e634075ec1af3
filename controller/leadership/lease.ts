import type { Call } from "../backend.ts";

/**
 * What a Lease says: the `spec` of `coordination.k8s.io/v1`. Times are kept as the text that stands
 * there (RFC 3339 in UTC with six fraction digits, `V1MicroTime`): a number would lose digits of
 * another writer's.
 */
export interface LeaseRecord {
  /** `holderIdentity`; empty when nobody holds it. */
  readonly holder: string;
  /** `leaseDurationSeconds`: whole seconds; null when the Lease does not say. */
  readonly durationSeconds: number | null;
  readonly acquireTime: string | null;
  readonly renewTime: string | null;
  /** `leaseTransitions`, 0 when the Lease does not say. */
  readonly transitions: number;
}

/** Annotations to set; null removes one. Others stay as they are. */
export type LeaseAnnotations = Readonly<Record<string, string | null>>;

/** A Lease at one moment. */
export interface StoredLease {
  readonly record: LeaseRecord;
  readonly annotations: Readonly<Record<string, string>>;
  /** The store's own word for this state of the Lease; a write names what it replaces by it. */
  readonly version: string;
}

/**
 * One Lease that all contenders share. Each method is one try, bounded by its signal; it rejects with
 * the signal's reason, or with {@link LeaseError}. A write that rejects may have been stored all the
 * same, unless the error says `conflict`.
 */
export interface LeaseStore {
  /** What stands there; undefined when there is no Lease. */
  read(call: Call): Promise<StoredLease | undefined>;
  /** Makes it; `conflict` when there is one. */
  create(record: LeaseRecord, annotations: LeaseAnnotations, call: Call): Promise<StoredLease>;
  /** Replaces the record of that version; `conflict` when it has changed since, or is gone. */
  update(
    version: string,
    record: LeaseRecord,
    annotations: LeaseAnnotations,
    call: Call,
  ): Promise<StoredLease>;
  /**
   * Calls back with what the Lease has become (undefined: deleted), until aborted. A hint: it may be
   * late, come twice or not at all.
   */
  watch(listener: (lease: StoredLease | undefined) => void, signal: AbortSignal): void;
}

/** Why a {@link LeaseStore} has not answered. */
export type LeaseErrorCode =
  /** The Lease is no longer what the writer had seen. */
  | "conflict"
  /** No answer, or a server in trouble: it may work later. */
  | "unavailable"
  /** The server refuses: rights, or a Lease that cannot be written like this. */
  | "refused";

/** Failure of a {@link LeaseStore}. */
export class LeaseError extends Error {
  override readonly name = "LeaseError";
  readonly code: LeaseErrorCode;

  constructor(code: LeaseErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Milliseconds since the epoch as the text of a `V1MicroTime`. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

/** Milliseconds since the epoch of a Lease's time; null for none, and for what is no time. */
export function msOfMicroTime(text: string | null): number | null {
  const ms = text === null ? NaN : Date.parse(text);
  return Number.isNaN(ms) ? null : ms;
}

/** True when a contender that watches the Lease would see no difference. */
export function sameRecord(a: LeaseRecord, b: LeaseRecord): boolean {
  return a.holder === b.holder && a.durationSeconds === b.durationSeconds &&
    a.acquireTime === b.acquireTime && a.renewTime === b.renewTime &&
    a.transitions === b.transitions;
}
