import type { Call } from "../../controller/backend.ts";

/** One sandbox, as the server tells of it. Missing texts are empty. */
export interface Sandbox {
  /** Given by the server, never used again. */
  readonly id: string;
  /** `Pending`, `Running`, `Stopping`, `Terminated`, `Failed` and others; empty when there is none. */
  readonly state: string;
  /** One word of the server's, such as `TASK_FAILED`. */
  readonly reason: string;
  readonly message: string;
  /** Labels in Kubernetes' form, all that there is to keep notes in. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch by the server's clock, of a second's precision; 0 when unreadable. */
  readonly createdAt: number;
  /** Milliseconds since the epoch by our clock; null for one that never expires. */
  readonly expiresAt: number | null;
}

/** Oldest first; the server's times are whole seconds, so that ids decide between equals. */
export function byAge(a: Sandbox, b: Sandbox): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** A sandbox to be taken from a pool. */
export interface NewSandbox {
  /** Name of the pool. */
  readonly pool: string;
  readonly entrypoint: readonly string[];
  /** Holds the capability: never log it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  /** The server removes it after so long, counted from now. */
  readonly timeoutMs: number;
}

/**
 * What the VM backend needs of OpenSandbox's Lifecycle API. Every method throws {@link SandboxError};
 * aborting the signal rejects with the signal's reason.
 */
export interface Sandboxes {
  /**
   * Every sandbox with all of these metadata, oldest first, in as many pages as it takes. The server may
   * answer from a cache that lags behind: one that it lacks is surely gone only when {@link get} says so.
   */
  list(metadata: Readonly<Record<string, string>>, call: Call): Promise<Sandbox[]>;
  /** Undefined when there is none. */
  get(id: string, call: Call): Promise<Sandbox | undefined>;
  /**
   * Makes one and resolves when it runs: the server answers no earlier, up to a minute later. It is not
   * idempotent, and one whose answer nobody waits for is made all the same.
   */
  create(sandbox: NewSandbox, call: Call): Promise<Sandbox>;
  /** Sets metadata and leaves the rest; false when there is no such sandbox. */
  patch(id: string, metadata: Readonly<Record<string, string>>, call: Call): Promise<boolean>;
  /** Asks for its end; false when there was none. */
  delete(id: string, call: Call): Promise<boolean>;
}

/** Codes of {@link SandboxError} that say that surely nothing was made. */
export type NothingMade =
  /** Every sandbox of the pool is taken. */
  | "pool_full"
  | "pool_missing"
  | "quota"
  /** 401: the API key. */
  | "unauthorized"
  /** 403 of another kind. */
  | "forbidden"
  /** 400, 404, 405, 409, 422: what was sent does not fit there. */
  | "invalid"
  /** 429: too many calls. */
  | "throttled"
  /** Nothing was sent: no connection. */
  | "unreachable";

/** Codes of {@link SandboxError} after which a sandbox may be there. */
export type MaybeMade =
  /** It failed while it started, and the server says that it has removed it. */
  | "start_failed"
  /**
   * It did not start in time, and the server says that it has removed it: with old operators, a full
   * pool.
   */
  | "start_timeout"
  /** No answer, or none that can be understood: it may have been done. */
  | "unknown_outcome";

/** Codes of {@link SandboxError}. */
export type SandboxErrorCode = NothingMade | MaybeMade;

/** The server said no, or did not answer. */
export class SandboxError extends Error {
  override readonly name = "SandboxError";
  /** What kind of no. */
  readonly code: SandboxErrorCode;
  /** How long the server asked to wait, milliseconds; null when it did not. */
  readonly retryAfterMs: number | null;

  /** `message`: the server's own words, or what happened to the connection; never a key. */
  constructor(
    code: SandboxErrorCode,
    message: string,
    options: { readonly retryAfterMs?: number | null; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}
