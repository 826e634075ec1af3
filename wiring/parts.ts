import type { connectNats } from "../clients/nats/connection.ts";
import type { Backend, Executor } from "../controller/backend.ts";
import type { Config } from "../controller/config/config.ts";
import type { Journal } from "../controller/journal.ts";
import type { LeaderLabel } from "../controller/leadership/leader_label.ts";
import type { Leadership } from "../controller/leadership/leadership.ts";
import type { AssignmentId } from "../controller/model/ids.ts";
import { allOrNone } from "../lib/all_or_none.ts";
import type { Recorder } from "../controller/recorder.ts";
import type { Records } from "../controller/records.ts";
import type { Secret } from "../lib/secret.ts";
import { createConfiguredSupplies } from "./configured_supplies.ts";
import { prepareProcesses } from "./process_parts.ts";
import type { ProgramContext } from "./program.ts";
import type { Sources } from "./sources.ts";
import { createSupplies, inState } from "./supplies.ts";

/** What the environment, or the embedded profile, has supplied. */
export interface Parts extends ServerParts, ExecutorParts {
  readonly capabilityKeys: readonly Secret[];
  /** Of a STATE_DIR that is locked: see `LeaderNote`. */
  readonly place?: string | null;
  readonly trustDomain: string;
  readonly facade: {
    readonly hostname: string;
    readonly port: number;
    /** Null: made from the port that is listened on. */
    readonly url: string | null;
    readonly spiffeId: string;
  };
  /** Makes the contender for the lead; absent where the lead is a key beside the records. */
  elect?(options: Contender): Leadership;
  /** Tells on the executors themselves what becomes of them; absent where they can hold no such note. */
  announce?(deps: {
    executorOf(id: AssignmentId): Pick<Executor, "name" | "uid"> | null;
    guard(): void;
  }): Journal & { run(signal: AbortSignal): Promise<void> };
  /** Shows outside of this process that it leads; absent where nobody looks for it. */
  label?(guard: () => void): LeaderLabel;
}

/** Gitea with our registration, and NATS. */
export interface ServerParts {
  readonly gitea: { readonly url: string; readonly uuid: string; readonly token: Secret };
  readonly nats: Pick<
    Parameters<typeof connectNats>[0],
    "servers" | "user" | "password" | "credsFile" | "caFile"
  >;
}

/** Where executors live, and the Workload API of this process. */
export interface ExecutorParts {
  /** Made when this process leads; `guard` throws while it may not act. */
  backends(guard: () => void, records: Pick<Records, "get">): Promise<readonly Backend[]>;
  readonly endpointSocket: string;
}

/** What a cluster gives. */
export interface ClusterParts extends Pick<Parts, "elect" | "label" | "announce"> {
  podBackend(gitea: ServerParts["gitea"], guard: () => void): Promise<Backend>;
}

/** What OpenSandbox gives. */
export interface SandboxParts {
  vmBackend(
    gitea: ServerParts["gitea"],
    guard: () => void,
    records: Pick<Records, "get">,
  ): Promise<Backend>;
}

/** What parts are made with. */
export interface PartsContext extends ProgramContext {
  readonly stack: AsyncDisposableStack;
  readonly sources: Sources;
  readonly recorder: Recorder;
}

/** Who contends for the lead. */
export interface Contender {
  /** Name of this process, unlike every other's. */
  readonly self: string;
  /** Where our pages are reached; null when nobody was told. */
  readonly address: string | null;
  /** Called once when the lead is another's, or may be. */
  onLost(detail: string): void;
}

/** Makes executors' part once Gitea's registration is known; prepared beside the servers' start. */
export type MakeExecutors = (gitea: ServerParts["gitea"]) => Promise<ExecutorParts>;

/**
 * Everything the controller needs: what is configured as configured, and in the embedded profile the
 * rest on this machine. What was started is pushed on `stack`.
 */
export async function supplyParts(
  config: Config,
  context: PartsContext,
  signal: AbortSignal,
): Promise<Parts> {
  const supplies = config.profile === "embedded"
    ? await inState(config, createSupplies(config, context))
    : createConfiguredSupplies(config);
  const { trustDomain } = config.spiffe;
  const facadeSpiffeId = config.facade.spiffeId ??
    `spiffe://${trustDomain}/gitea-dynamic-runner/facade`;
  const cluster = config.kubernetes === null
    ? undefined
    : await (await import("./kubernetes_parts.ts")).openCluster(config, config.kubernetes, context);
  const sandboxes = config.executors === "real" && config.backends.vm.enabled
    ? (await import("./vm_parts.ts")).openSandboxes(config, context)
    : undefined;
  const prepare = config.executors === "process"
    ? (stop: AbortSignal) => prepareProcesses(config, { ...context, facadeSpiffeId }, stop)
    : () => Promise.resolve(makeReal(config, { cluster, sandboxes }));
  const [[nats, gitea], makeExecutors] = await allOrNone([
    (stop) => inState(config, allOrNone([supplies.nats, supplies.gitea], stop)),
    prepare,
  ], signal);
  return {
    gitea,
    nats,
    ...clusterParts(cluster),
    ...await makeExecutors(gitea),
    capabilityKeys: await inState(config, supplies.capabilityKeys()),
    place: await inState(config, supplies.place()),
    trustDomain,
    facade: {
      hostname: config.facade.listen.hostname,
      port: await supplies.facadePort(),
      url: config.facade.url,
      spiffeId: facadeSpiffeId,
    },
  };
}

/** Executors that are isolated from this process (`EXECUTORS=real`). */
function makeReal(
  config: Config,
  { cluster, sandboxes }: {
    readonly cluster: ClusterParts | undefined;
    readonly sandboxes: SandboxParts | undefined;
  },
): MakeExecutors {
  const { endpointSocket } = config.spiffe;
  const pods = config.backends.pod.enabled ? cluster : undefined;
  if (endpointSocket === null || (config.backends.pod.enabled && pods === undefined)) {
    throw new TypeError("Make Pods: neither a cluster nor SPIFFE_ENDPOINT_SOCKET is configured");
  }
  return (gitea) =>
    Promise.resolve({
      backends: (guard, records) =>
        Promise.all([
          ...pods === undefined ? [] : [pods.podBackend(gitea, guard)],
          ...sandboxes === undefined ? [] : [sandboxes.vmBackend(gitea, guard, records)],
        ]),
      endpointSocket,
    });
}

function clusterParts(
  cluster: ClusterParts | undefined,
): Pick<Parts, "elect" | "label" | "announce"> {
  return {
    ...cluster?.elect === undefined ? {} : { elect: cluster.elect },
    ...cluster?.label === undefined ? {} : { label: cluster.label },
    ...cluster?.announce === undefined ? {} : { announce: cluster.announce },
  };
}
