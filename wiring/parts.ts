import type { connectNats } from "../clients/nats/connection.ts";
import type { Backend } from "../controller/backend.ts";
import type { Config } from "../controller/config/config.ts";
import type { Leadership } from "../controller/leadership.ts";
import { allOrNone } from "../lib/all_or_none.ts";
import type { Secret } from "../lib/secret.ts";
import { createConfiguredSupplies } from "./configured_supplies.ts";
import { prepareProcesses } from "./process_parts.ts";
import type { ProgramContext } from "./program.ts";
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
  /** Shows outside of this process that it leads, until aborted; then takes that back, within seconds. */
  markLeader?(signal: AbortSignal): Promise<void>;
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
  readonly backends: readonly Backend[];
  readonly endpointSocket: string;
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
  context: ProgramContext & { readonly stack: AsyncDisposableStack },
  signal: AbortSignal,
): Promise<Parts> {
  const supplies = config.profile === "embedded"
    ? await inState(config, createSupplies(config, context))
    : createConfiguredSupplies(config);
  const { trustDomain } = config.spiffe;
  const facadeSpiffeId = config.facade.spiffeId ??
    `spiffe://${trustDomain}/gitea-dynamic-runner/facade`;
  const [[nats, gitea], makeExecutors] = await allOrNone([
    (stop) => inState(config, allOrNone([supplies.nats, supplies.gitea], stop)),
    () => prepareProcesses(config, { ...context, facadeSpiffeId }),
  ], signal);
  return {
    gitea,
    nats,
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
