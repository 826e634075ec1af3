import type { ProcessIdentity } from "../../backends/process/process_identity.ts";
import { BackendError, type Call } from "../../controller/backend.ts";
import type { Entry } from "../../proto/gen/spire/api/types/entry_pb.ts";
import { socketPathOf } from "../spiffe/workload_protocol.ts";
import { createEntryApi, type EntryApi, type EntryInit, idOf } from "./entry_api.ts";

/** Identities of process executors at a SPIRE server: one entry each, told apart by their user. */
export interface SpireEntries extends ProcessIdentity, Disposable {
  /** Names of the executors that have an entry of this instance; for the sweep of orphans. */
  list(call: Call): Promise<string[]>;
}

/** What {@link createSpireEntries} needs. */
export interface SpireEntriesOptions {
  /** The server's admin socket, `unix:///...` or a path. */
  readonly adminSocket: string;
  /** Value of `SPIFFE_ENDPOINT_SOCKET` for executors: the agent's Workload API. */
  readonly endpoint: string;
  /** The agent's node alias or id; parent of every entry. */
  readonly parentId: string;
  /** Begins the hint of every entry of ours: entries without it are never touched. */
  readonly instancePrefix: string;
}

/** Short, because a deleted entry's SVID lives on until it expires. */
const SVID_TTL_SECONDS = 300;

/**
 * Process identities as entries of a real SPIRE server with selector `unix:uid:<uid>`: executors need
 * a user of their own, or they share identities. An entry's hint is `<instancePrefix>.<executor>`.
 *
 * All methods throw `BackendError`; `bind` with code `conflict` when somebody else's entry gives the
 * same user the same SPIFFE ID. Opens nothing yet; dispose it to close the connection.
 */
export function createSpireEntries(
  options: SpireEntriesOptions,
  api: EntryApi = createEntryApi(socketPathOf(options.adminSocket) ?? options.adminSocket),
): SpireEntries {
  const { parentId, endpoint, instancePrefix } = options;
  const prefix = `${instancePrefix}.`;

  const make = async (wanted: EntryInit, signal: AbortSignal): Promise<void> => {
    const { kind, entry } = await api.create(wanted, signal);
    if (kind === "created" || entry.hint === wanted.hint) return;
    if (!entry.hint.startsWith(prefix)) {
      throw new BackendError(
        "conflict",
        `Make entry "${wanted.hint}": entry "${entry.id}" of somebody else gives the same identity`,
      );
    }
    // A leftover of an executor that is gone: this user is ours now.
    await api.delete([entry.id], signal);
    const again = await api.create(wanted, signal);
    if (again.kind === "created") return;
    throw new BackendError("unavailable", `Make entry "${wanted.hint}": another one came between`);
  };

  return {
    endpoint(_executor, _userId, { signal }) {
      signal.throwIfAborted();
      return Promise.resolve(endpoint);
    },
    async bind({ executor, userId, spiffeId }, { signal }) {
      const wanted = {
        spiffeId: idOf(spiffeId),
        parentId: idOf(parentId),
        selectors: [{ type: "unix", value: `uid:${userId ?? Deno.uid()}` }],
        x509SvidTtl: SVID_TTL_SECONDS,
        hint: prefix + executor,
      };
      const held = await api.list({ parentId, hint: wanted.hint }, signal);
      const stale = held.filter((entry) => !says(entry, wanted));
      await api.delete(stale.map((entry) => entry.id), signal);
      if (held.length === stale.length) await make(wanted, signal);
    },
    async unbind(executor, { signal }) {
      const held = await api.list({ parentId, hint: prefix + executor }, signal);
      await api.delete(held.map((entry) => entry.id), signal);
    },
    async list({ signal }) {
      const entries = await api.list({ parentId }, signal);
      return entries.filter((entry) => entry.hint.startsWith(prefix))
        .map((entry) => entry.hint.slice(prefix.length));
    },
    [Symbol.dispose]: () => api[Symbol.dispose](),
  };
}

function says(
  entry: Entry,
  wanted: {
    readonly spiffeId: { readonly path: string };
    readonly selectors: readonly { readonly type: string; readonly value: string }[];
  },
): boolean {
  const [selector, ...more] = entry.selectors;
  const [only] = wanted.selectors;
  return entry.spiffeId?.path === wanted.spiffeId.path && more.length === 0 &&
    selector?.type === only?.type && selector?.value === only?.value;
}
