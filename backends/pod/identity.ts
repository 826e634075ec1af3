import { BackendError, type Call, type Executor } from "../../controller/backend.ts";
import type { AssignmentInfo } from "../../controller/model/assignment_info.ts";
import type { Instance } from "../../controller/model/ids.ts";
import { metadataKeys } from "../../controller/model/metadata.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import {
  ClusterError,
  type EntrySpec,
  type ExecutorCluster,
  type IdentityEntry,
} from "./cluster.ts";

/** What identity entries are made of. */
export interface IdentitySettings {
  readonly instance: Instance;
  /** `METADATA_PREFIX`. */
  readonly prefix: string;
  /** User of the executor's processes. */
  readonly userId: number;
  /** `SPIRE_CLASS`. */
  readonly className: string;
  /** `SPIRE_AGENT_ID`, with `{nodeUID}` for the UID of the executor's Node. */
  readonly agentId: string;
}

/** Gives Pods their SPIFFE ID: one ClusterStaticEntry each, of the executor's name. */
export interface PodIdentity {
  /** The parent's name depends on the node. */
  readonly needsNode: boolean;
  /** Idempotent; an entry for an earlier Pod of that name is replaced. */
  bind(executor: Executor, assignment: AssignmentInfo, call: Call): Promise<void>;
  /** Takes it away from exactly this Pod. Absent is success. */
  unbind(executor: Pick<Executor, "name" | "uid">, call: Call): Promise<void>;
  /** The entries of our instance. */
  list(call: Call): Promise<IdentityEntry[]>;
  /**
   * Deletes entries, listed BEFORE `present`, whose Pods are gone, and complains once about those
   * that SPIRE does not have. A part that fails is left for the next time.
   */
  sweep(
    entries: readonly IdentityEntry[],
    present: ReadonlySet<string>,
    call: Call,
  ): Promise<void>;
}

/** SPIRE renews an SVID at half of it; one that was taken from an executor outlives it by no more than this. */
const SVID_TTL = "300s";
const NODE_UID = "{nodeUID}";
const POD_UID = "k8s:pod-uid:";
/** An entry may vanish between "the name is taken" and the look at it, or come back after its deletion. */
const TRIES = 3;
/** Deletions of one sweep; the next one goes on. */
const SWEPT_AT_ONCE = 50;
/** Before an entry that nobody has rendered is worth a word. */
const RENDER_MS = 30_000;

/** Makes {@link PodIdentity} on a cluster with spire-controller-manager. */
export function createPodIdentity(deps: {
  readonly cluster: ExecutorCluster;
  readonly settings: IdentitySettings;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Throws when this process may not act any more; asked right before each effect. */
  guard(): void;
}): PodIdentity {
  const { cluster, settings, clock } = deps;
  const keys = metadataKeys(settings.prefix).labels;
  const mine = { [keys.instance]: settings.instance };
  const needsNode = settings.agentId.includes(NODE_UID);
  const troubles = createTroubles({ clock, logger: deps.logger, className: settings.className });

  const parentOf = async ({ name, node }: Executor, call: Call): Promise<string> => {
    if (!needsNode) return settings.agentId;
    if (node === null) {
      throw new BackendError(
        "unavailable",
        `Bind the identity of executor "${name}": it has no node`,
      );
    }
    // Asked each time: a Node that was made again under its name has another UID.
    const uid = await cluster.nodeUid(node, call);
    if (uid === undefined) {
      throw new BackendError(
        "unavailable",
        `Bind the identity of executor "${name}": its node "${node}" is gone`,
      );
    }
    return settings.agentId.replaceAll(NODE_UID, uid);
  };

  /** True when there is an entry with this spec now, false when it is worth another try. */
  const settle = async (name: string, spec: EntrySpec, call: Call): Promise<boolean> => {
    const found = await cluster.getEntry(name, call);
    if (found === undefined) return false;
    if (found.labels[keys.instance] !== settings.instance) {
      throw new BackendError(
        "conflict",
        `Bind the identity of executor "${name}": a ClusterStaticEntry of that name is not ours; delete it`,
      );
    }
    if (isSame(found.spec, spec)) return true;
    deps.logger.info("identity entry of an earlier executor is replaced", { executor: name });
    deps.guard();
    await ignoring(["not_found", "conflict"], cluster.deleteEntry(found, call));
    return false;
  };

  return {
    needsNode,
    async bind(executor, assignment, call) {
      const { name, uid } = executor;
      const spec: EntrySpec = {
        spiffeID: assignment.identity.spiffeId,
        parentID: await parentOf(executor, call),
        selectors: [`${POD_UID}${uid}`, `unix:uid:${settings.userId}`],
        className: settings.className,
        x509SVIDTTL: SVID_TTL,
      };
      const labels = { ...mine, [keys.runner]: "true", [keys.assignmentId]: assignment.id };
      for (let tries = 0; tries < TRIES; tries++) {
        deps.guard();
        try {
          return await cluster.createEntry({ name, labels, spec }, call);
        } catch (error) {
          if (!(error instanceof ClusterError) || error.code !== "already_exists") throw error;
        }
        if (await settle(name, spec, call)) return;
      }
      throw new BackendError(
        "unavailable",
        `Bind the identity of executor "${name}": its ClusterStaticEntry is made and deleted by others`,
      );
    },
    async unbind({ name, uid }, call) {
      const found = await cluster.getEntry(name, call);
      if (found === undefined || found.labels[keys.instance] !== settings.instance) return;
      if (podUidOf(found) !== uid) return;
      deps.guard();
      await ignoring(["not_found", "conflict"], cluster.deleteEntry(found, call));
    },
    list: (call) => cluster.listEntries(mine, call),
    async sweep(entries, present, call) {
      troubles.look(entries);
      let swept = 0;
      for (const entry of entries) {
        const uid = podUidOf(entry);
        if (uid !== undefined && present.has(uid)) continue;
        if (++swept > SWEPT_AT_ONCE) return;
        // A Pod that has lost our label is not in the list and may be alive.
        const pod = await cluster.getPod(entry.name, call);
        if (pod !== undefined && pod.uid === uid) continue;
        deps.guard();
        await ignoring(["not_found", "conflict"], cluster.deleteEntry(entry, call));
        deps.logger.info("identity entry without executor deleted", { entry: entry.name });
      }
    },
  };
}

/** The Pod that an entry is for; undefined when it says none. */
export function podUidOf(entry: IdentityEntry): string | undefined {
  return entry.spec.selectors?.find((selector) => selector.startsWith(POD_UID))
    ?.slice(POD_UID.length);
}

function isSame(found: Readonly<Partial<EntrySpec>>, wanted: EntrySpec): boolean {
  const sorted = (selectors: readonly string[] = []) => JSON.stringify(selectors.toSorted());
  return found.spiffeID === wanted.spiffeID && found.parentID === wanted.parentID &&
    found.className === wanted.className && found.x509SVIDTTL === wanted.x509SVIDTTL &&
    sorted(found.selectors) === sorted(wanted.selectors);
}

/** What keeps an entry from SPIRE, said once: the resource itself has no place for an error. */
function createTroubles(deps: {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly className: string;
}): { look(entries: readonly IdentityEntry[]): void } {
  const seen = new Map<string, { readonly since: number; said: boolean }>();
  return {
    look(entries) {
      const uids = new Set(entries.map(({ uid }) => uid));
      for (const uid of seen.keys()) if (!uids.has(uid)) seen.delete(uid);
      const now = deps.clock.monotonic();
      for (const { name, uid, rendered, masked } of entries) {
        const known = seen.get(uid) ?? { since: now, said: false };
        seen.set(uid, known);
        if (known.said) continue;
        if (masked) {
          known.said = true;
          deps.logger.warn("identity entry is masked", {
            entry: name,
            detail: "another ClusterStaticEntry or ClusterSPIFFEID says the same; delete that one",
          });
        } else if (!rendered && now - known.since >= RENDER_MS) {
          known.said = true;
          deps.logger.warn("identity entry is not rendered", {
            entry: name,
            detail: `no spire-controller-manager of class "${deps.className}" has taken it; ` +
              "check SPIRE_CLASS, SPIRE_AGENT_ID and the manager's log",
          });
        }
      }
    },
  };
}

async function ignoring(
  codes: readonly ClusterError["code"][],
  work: Promise<unknown>,
): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ClusterError) || !codes.includes(error.code)) throw error;
  }
}
