import type { Config } from "../controller/config/config.ts";
import type { Fault } from "../controller/config/reader.ts";

/**
 * What a configuration asks for and this version does not have: refused, rather than something else
 * being run in its place. Each names the variable and the ways out.
 */
export function missingParts(
  { executors, leaderElection }: Pick<Config, "executors" | "leaderElection">,
): Fault[] {
  const missing: Fault[] = [];
  if (executors === "real") {
    missing.push({
      variable: "EXECUTORS",
      given: '"real"',
      allowed: "process, which isolates nothing",
      message: "EXECUTORS=real cannot be run: this version has no pod and vm backends",
    });
  }
  if (leaderElection === "kubernetes") {
    missing.push({
      variable: "LEADER_ELECTION",
      given: '"kubernetes"',
      allowed: "none, with one replica",
      message: "LEADER_ELECTION=kubernetes cannot be run: this version has no election by a Lease",
    });
  }
  return missing;
}
