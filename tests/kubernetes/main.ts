/**
 * The Pod backend, leadership and the manifests on a real kube-apiserver with RBAC, real SPIRE with its
 * k8s attestor, the real spire-controller-manager, real Gitea and NATS; controllers and executors are
 * run as their Pods' specs say. Ends with `N passed, N failed, N skipped`.
 *
 * `--only=NAME[,NAME]` takes parts of it; `--list` names them. The part `chaos` plays `--jobs=300` jobs of
 * `--seed=N` (a new one by default, which is printed); `--resume=DIR` keeps its diary there and goes on
 * where it ends, `--round=N` plays that round of the seed alone.
 */
import { createReport } from "../e2e/report.ts";
import { stopSignal } from "../support/stop_signal.ts";
import {
  chooseParts,
  endSuite,
  numberOption,
  PART_OPTIONS,
  playParts,
  printLine,
  requireRoot,
  suiteArgs,
  suiteOptions,
} from "../support/suite_parts.ts";
import { createAudit } from "./audit.ts";
import { checkChain } from "./chain.ts";
import { type ChaosPlan, checkChaos } from "./chaos.ts";
import { checkClient } from "./client.ts";
import { firstInstallation, startCluster } from "./cluster.ts";
import { checkContract } from "./contract.ts";
import { checkEndings, checkSidecar } from "./endings.ts";
import { checkHandover } from "./handover.ts";
import { checkInstances } from "./instances.ts";
import { checkLeadership } from "./leadership.ts";
import { checkApiOutage } from "./load.ts";
import { checkMutations } from "./mutations.ts";
import { checkRecovery } from "./recovery_pods.ts";
import { checkRefusals } from "./refusals.ts";
import { createReplicas, giteaOf, makeSecret, NATS_AUTHORIZATION } from "./replicas.ts";
import { checkRights } from "./rights.ts";
import { checkRightsUsed } from "./rights_used.ts";
import { checkRollingRestart } from "./rolling.ts";
import type { Stage } from "./stage.ts";
import { WORKFLOWS } from "./workflows.ts";

/** Played first, on a machine that is still quiet: it starts its servers itself. */
const CONTRACT = "contract";
/** Parts in the order in which they are played; each may be played alone. */
const PARTS: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  rights: checkRights,
  // First of those with jobs: two fresh Giteas count their tasks alike.
  instances: checkInstances,
  client: checkClient,
  leadership: checkLeadership,
  chain: checkChain,
  handover: checkHandover,
  refusals: checkRefusals,
  endings: checkEndings,
  sidecar: checkSidecar,
  rolling: checkRollingRestart,
  outage: checkApiOutage,
  recovery: checkRecovery,
  chaos: checkChaos,
  mutations: checkMutations,
  used: checkRightsUsed,
};

const NAMES: readonly string[] = [CONTRACT, ...Object.keys(PARTS)];

/** Runs the suite and resolves to the exit code. */
export async function main(
  args: readonly string[],
  print: (line: string) => void,
): Promise<number> {
  const values = suiteOptions({
    ...PART_OPTIONS,
    jobs: { type: "string", default: "300" },
    seed: { type: "string" },
    resume: { type: "string" },
    round: { type: "string" },
  }, args);
  const wanted = chooseParts(values, NAMES, print);
  if (wanted === null) return 0;
  const chaos: ChaosPlan = {
    jobs: numberOption(values.jobs),
    seed: numberOption(values.seed ?? String(crypto.getRandomValues(new Uint32Array(1))[0])),
    resume: values.resume ?? null,
    round: values.round === undefined ? null : numberOption(values.round),
  };
  const signal = stopSignal();
  const report = createReport(print);
  const started = performance.now();
  await report.attempt("the Kubernetes tests", async () => {
    if (wanted.includes(CONTRACT)) await checkContract({ report, signal });
    const parts = wanted.filter((name) => name !== CONTRACT);
    if (parts.length === 0) return;
    requireRoot("the Kubernetes tests");
    await using audit = await createAudit();
    await using cluster = await startCluster({
      say: print,
      signal,
      env: { ...audit.env, NATS_EXTRA: NATS_AUTHORIZATION },
    });
    const gitea = giteaOf(cluster.peers, signal);
    const installation = firstInstallation(cluster.peers);
    const repository = `${gitea.user}/kube`;
    await gitea.createRepository("kube", { private: false });
    await gitea.commit(repository, WORKFLOWS);
    await makeSecret(cluster, gitea, installation);
    print(`the cluster is up after ${((performance.now() - started) / 1000).toFixed(1)} s`);
    const stage: Stage = {
      cluster,
      installation,
      audit,
      report,
      gitea,
      repository,
      chaos,
      replicas: createReplicas(cluster, installation),
      signal,
    };
    await playParts(parts, PARTS, stage);
  });
  return endSuite(report, started, print);
}

if (import.meta.main) Deno.exit(await main(suiteArgs(), printLine));
