import { type Alone, checkSuites, type Suite } from "../support/contract_suites.ts";

/** Contract suites of the ports that a cluster implements: in memory, then on a real API server. */
const SUITES: readonly Suite[] = [
  { file: "backend_pod_fake_test.ts" },
  { file: "backend_pod_kube.ts" },
  { file: "lease_fake_test.ts" },
  { file: "lease_kube.ts" },
];

/** Runs the contract suites of a cluster's ports, as {@link checkSuites} does. */
export async function checkContract(alone: Alone): Promise<void> {
  await checkSuites(alone, SUITES);
}
