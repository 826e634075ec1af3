import { WORKFLOWS as OF_PODS } from "../kubernetes/workflows.ts";
import type { RepositoryFile } from "../support/gitea_api.ts";

const TAKEN = ["hello", "quick"];

/** Workflows of this suite: those of the Pods' suite that ask for nothing of a Pod, on a microVM. */
export const WORKFLOWS: readonly RepositoryFile[] = OF_PODS
  .filter(({ path }) => TAKEN.some((name) => path.endsWith(`/${name}.yaml`)))
  .map(({ path, content }) => ({
    path,
    content: content.replace("[self-hosted, pod]", "[self-hosted, vm]"),
  }));
