import type { AssignmentInfo } from "../controller/model/assignment_info.ts";
import type { AssignmentId } from "../controller/model/ids.ts";

/**
 * Launch environment of an executor, the same for every backend. Holds the capability:
 * never logged, never on disk. Backends add `SPIFFE_ENDPOINT_SOCKET`.
 */
export function createLaunch(options: {
  readonly facadeUrl: string;
  readonly facadeSpiffeId: string;
  /** Gitea's base URL, for a task whose context does not tell it. */
  readonly giteaUrl: string;
  capability(id: AssignmentId): string;
  /** The assignment's trace, where there are traces. */
  traceparent?(id: AssignmentId): string | undefined;
}): (info: AssignmentInfo) => Readonly<Record<string, string>> {
  return (info) => {
    const traceparent = options.traceparent?.(info.id);
    return {
      CI_ASSIGNMENT_ID: info.id,
      CI_RUNNER_CAPABILITY: options.capability(info.id),
      CI_SPIFFE_ID: info.identity.spiffeId,
      RUNNER_FACADE_URL: options.facadeUrl,
      RUNNER_FACADE_SPIFFE_ID: options.facadeSpiffeId,
      GITEA_URL: info.serverUrl ?? options.giteaUrl,
      ...traceparent === undefined ? {} : { TRACEPARENT: traceparent },
    };
  };
}
