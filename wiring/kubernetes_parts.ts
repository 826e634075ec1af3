import { createPodBackend } from "../backends/pod/pod_backend.ts";
import { createPodEvents } from "../backends/pod/pod_events.ts";
import { NO_TEMPLATE, parsePodTemplate } from "../backends/pod/template.ts";
import { createKubernetes } from "../clients/kubernetes/client.ts";
import { createExecutorCluster } from "../clients/kubernetes/executor_cluster.ts";
import { createLeaseStore } from "../clients/kubernetes/leases.ts";
import { readText } from "../clients/kubernetes/material.ts";
import { createPodLabel } from "../clients/kubernetes/pod_label.ts";
import { createAddressProof } from "../controller/leadership/address_proof.ts";
import type { Config, KubernetesAccess } from "../controller/config/config.ts";
import { createLeaderLabel } from "../controller/leadership/leader_label.ts";
import { createLeaseElector, type LeaseElector } from "../controller/leadership/lease_elector.ts";
import { instanceOf } from "../controller/model/ids.ts";
import { messageOf } from "../lib/error_text.ts";
import type { ClusterParts, PartsContext } from "./parts.ts";

/** Name of the Lease, which others may contend for, too; `deploy/kubernetes/rbac.yaml` names it as well. */
const LEASE = "dynamic-runner-scheduler";
/** A recovery, the watch and the look at everything list at their own times: together once a second. */
const LIST_SPACING_MS = 1_000;

/**
 * What an API server gives: Pods as executors, election by a Lease, the leader's label. Loaded only
 * where it is used, because its client library is large. Rejects when the credentials or the Pod
 * template cannot be read; an API server that is away is waited for later.
 */
export async function openCluster(
  config: Config,
  access: KubernetesAccess,
  context: PartsContext,
): Promise<ClusterParts> {
  const { clock, logger, random, stack, sources, recorder } = context;
  const deps = { clock, logger, random, recorder };
  // The client is made before anybody leads, the leader's guard with the lead: until then no change passes.
  let mayAct = (): void => {
    throw new Error("Change the cluster: this process does not lead yet");
  };
  const before = () => mayAct();
  const from = settingOf(access);
  const kubernetes = stack.use(await named(from, createKubernetes(access, { ...deps, before })));
  const pods = config.executors === "real" && config.backends.pod.enabled;
  const settings = pods ? await podSettings(config) : null;
  const executors = createExecutorCluster(kubernetes, {
    namespace: config.namespace,
    clock,
    listSpacingMs: LIST_SPACING_MS,
  });
  const elected = config.leaderElection === "kubernetes";
  const ownNamespace = elected ? await named(from, namespaceOf(access)) : null;
  // No burst of other calls may hold up the renewal of the lease. It has no `before`: who contends, or
  // takes its label off, does not lead.
  const renewing = elected ? stack.use(await createKubernetes(access, deps)) : null;
  // Without Pods the lease alone tells how the server does.
  const speaking = settings === null && renewing !== null ? renewing : kubernetes;
  sources.kubernetes = () => speaking.status();

  let elector: LeaseElector | null = null;
  if (elected && ownNamespace === null) {
    logger.info("no Pod of our own: the leader is labelled nowhere", { component: "leader" });
  }
  return {
    ...renewing === null ? {} : {
      elect({ self, address, onLost }) {
        const lease = { namespace: config.namespace, name: LEASE };
        elector = createLeaseElector({
          store: stack.use(createLeaseStore(renewing, { ...lease, logger })),
          clock,
          random,
          logger,
          self,
          addressAnnotation: `${config.metadataPrefix}/admin-advertise`,
          address,
          proof: createAddressProof(config.capabilityKeys ?? []),
          onLost,
        });
        return elector;
      },
    },
    ...ownNamespace === null ? {} : {
      label: (guard) =>
        createLeaderLabel({
          // Who does not lead (any more) takes it off, too: not by the client that only a leader uses.
          label: createPodLabel(renewing ?? kubernetes, {
            namespace: ownNamespace,
            key: `${config.metadataPrefix}/leader`,
            lease: `${config.namespace}/${LEASE}`,
          }),
          pod: config.hostname,
          predecessor: () => elector?.predecessor() ?? null,
          guard,
          clock,
          logger,
          random,
        }),
    },
    ...settings === null ? {} : {
      announce: (deps) => createPodEvents({ cluster: executors, clock, logger, ...deps }),
    },
    async podBackend(gitea, guard) {
      mayAct = guard;
      if (settings === null) throw new TypeError("Make Pods: no executor is one here");
      return createPodBackend({
        cluster: executors,
        pods: settings,
        identity: {
          instance: await instanceOf(gitea.uuid, config.namespace),
          prefix: config.metadataPrefix,
          className: config.pod.spireClass,
          agentId: config.pod.spireAgentId ?? "",
        },
        clock,
        logger,
        guard,
      });
    },
  };
}

async function podSettings({ pod, spiffe, metadataPrefix }: Config) {
  const { templateFile } = pod;
  return {
    image: pod.image ?? "",
    serviceAccount: pod.serviceAccount,
    userId: pod.userId,
    template: templateFile === null ? NO_TEMPLATE : await named(
      `POD_TEMPLATE_FILE="${templateFile}"`,
      Deno.readTextFile(templateFile).then((text) => parsePodTemplate(text, { metadataPrefix })),
    ),
    spiffeVolume: pod.spiffeVolume,
    endpointSocket: spiffe.endpointSocket ?? "",
  };
}

/** Only a process in a Pod has one to label: its service account says in which namespace. */
async function namespaceOf(access: KubernetesAccess): Promise<string | null> {
  if (access.kind !== "service_account") return null;
  return (await readText(`${access.directory}/namespace`)).trim();
}

/** Where the credentials are looked for, as it is set. */
function settingOf(access: KubernetesAccess): string {
  return access.kind === "kubeconfig"
    ? `KUBECONFIG="${access.path}"`
    : `KUBERNETES_SERVICE_ACCOUNT_DIR="${access.directory}"`;
}

/** What `work` gives; its failure names the setting that led there. */
async function named<T>(setting: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Error(`${messageOf(cause)}: check ${setting}`, { cause });
  }
}
