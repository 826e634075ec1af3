import { WORKFLOWS as OF_PODS } from "../kubernetes/workflows.ts";
import type { RepositoryFile } from "../support/gitea_api.ts";

/** Jobs whose first sandbox ends before it has claimed: their keys say how. */
export const BEFORE_CLAIM = [
  "before-exit-code",
  "before-exit-zero",
  "before-deleted",
  "before-expired",
] as const;
/** The same for what happens when the job runs. */
export const AFTER_CLAIM = [
  "after-killed",
  "after-silent",
  "after-deleted",
  "after-expired",
] as const;

const FOLDER = ".gitea/workflows";

/** The Pods' workflow of this name, on a microVM; `key`: another key for its job, and name of its file. */
function onVm(name: string, key = name): RepositoryFile {
  const found = OF_PODS.find(({ path }) => path === `${FOLDER}/${name}.yaml`);
  if (found === undefined) throw new Error(`Find workflow "${name}": Pods have none`);
  return {
    path: `${FOLDER}/${key}.yaml`,
    content: found.content.replace("[self-hosted, pod]", "[self-hosted, vm]")
      .replace(`\n  ${name}:\n`, `\n  ${key}:\n`),
  };
}

/** Workflows of this suite: those of the Pods' suite that ask for nothing of a Pod, one job each. */
export const WORKFLOWS: readonly RepositoryFile[] = [
  ...["hello", "quick"].map((name) => onVm(name)),
  ...BEFORE_CLAIM.map((key) => onVm("quick", key)),
  ...AFTER_CLAIM.map((key) => onVm("long", key)),
];
