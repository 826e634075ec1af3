import type { GiteaApi } from "../support/gitea_api.ts";
import type { Report } from "../e2e/report.ts";
import type { Audit } from "./audit.ts";
import type { ChaosPlan } from "./chaos.ts";
import type { Cluster, Installation } from "./cluster.ts";
import type { Replicas } from "./replicas.ts";

/** What the checks of this suite share. */
export interface Stage {
  readonly cluster: Cluster;
  readonly installation: Installation;
  readonly audit: Audit;
  readonly report: Report;
  readonly gitea: GiteaApi;
  /** `owner/name` of the repository with the workflows of `workflows.ts`. */
  readonly repository: string;
  readonly replicas: Replicas;
  readonly chaos: ChaosPlan;
  readonly signal: AbortSignal;
}

/** The user name of a service account. */
export function userOf(namespace: string, serviceAccount: string): string {
  return `system:serviceaccount:${namespace}:${serviceAccount}`;
}
