import type { Config } from "../controller/config/config.ts";

/**
 * Refuses a configuration that asks for what this version does not have, rather than running
 * something else in its place. Throws an `Error` that names the variables and the ways out.
 */
export function refuseMissingParts(
  config: Pick<Config, "executors" | "leaderElection">,
): void {
  const missing: string[] = [];
  if (config.executors === "real") {
    missing.push(
      "the pod and vm backends (EXECUTORS=real): set EXECUTORS=process, which isolates nothing",
    );
  }
  if (config.leaderElection === "kubernetes") {
    missing.push(
      "leader election by a Lease (LEADER_ELECTION=kubernetes): set LEADER_ELECTION=none and run one replica",
    );
  }
  if (missing.length > 0) {
    throw new Error(`Start: this version does not have ${missing.join("; nor ")}`);
  }
}
