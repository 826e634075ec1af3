/**
 * A call at the API server that did not succeed. Callers who abort get their signal's reason in its
 * place. Its message names what was tried, the state and the way out, and holds no token.
 */
export class KubernetesError extends Error {
  override readonly name = "KubernetesError";
  /** HTTP status; 0 when there was no whole answer. */
  readonly status: number;
  /**
   * The server's `Status.reason` (`AlreadyExists` and `Conflict` are both 409), or one of ours:
   * `Unreachable` (no connection, or lost), `Deadline` (no answer in time), `Malformed` (an answer
   * that is none of an API server).
   */
  readonly reason: string;
  /** What the server said, one bounded line; for our own reasons, the state in words. */
  readonly detail: string;
  /** How long the server asked to wait; null when it did not. */
  readonly retryAfterMs: number | null;

  constructor(action: string, failure: Failure, options?: { readonly cause?: unknown }) {
    super(messageOf(action, failure), options);
    this.status = failure.status;
    this.reason = failure.reason;
    this.detail = failure.detail;
    this.retryAfterMs = failure.retryAfterMs;
  }

  /** True for what may be over at the next try: no answer, or a server that is busy or in trouble. */
  get retryable(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  /** True when the server did not do its work for us: no answer, trouble of its own, or who we are. */
  get unanswered(): boolean {
    return this.retryable || this.status === 401;
  }
}

/** What is known of a call that failed. */
export interface Failure {
  readonly status: number;
  readonly reason: string;
  readonly detail: string;
  readonly retryAfterMs: number | null;
}

/** True for a {@link KubernetesError} with that reason, e.g. `hasReason(error, "AlreadyExists")`. */
export function hasReason(error: unknown, reason: string): error is KubernetesError {
  return error instanceof KubernetesError && error.reason === reason;
}

/** True when the object is not there. */
export function isNotFound(error: unknown): error is KubernetesError {
  return error instanceof KubernetesError && error.status === 404;
}

function messageOf(action: string, failure: Failure): string {
  const { status, reason, detail } = failure;
  const wayOut = wayOutOf(failure);
  const state = status === 0 ? detail : `the API server answered ${status} ${reason}: ${detail}`;
  return `${action}: ${state}${wayOut === "" ? "" : `: ${wayOut}`}`;
}

function wayOutOf({ status, reason, detail }: Failure): string {
  if (status === 401) {
    return "the token or client certificate is not valid there: check the service account or KUBECONFIG";
  }
  // A quota is a 403, too, and no matter of rights.
  if (status === 403 && / cannot \w+ resource /.test(detail)) {
    return "give the service account this right (a Role or ClusterRole bound to it)";
  }
  if (reason === "Unreachable") {
    return "check the API server's address, the network, and that it runs";
  }
  return "";
}
