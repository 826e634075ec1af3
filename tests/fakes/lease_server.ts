import {
  type LeaseAnnotations,
  LeaseError,
  type LeaseRecord,
  type LeaseStore,
  type StoredLease,
} from "../../controller/leadership/lease.ts";
import { abortable, onAbort } from "../../lib/abortable.ts";
import type { Clock } from "../../lib/clock.ts";
import type { ProcessClock } from "./process_clock.ts";

/** How a request of one process fares; times in milliseconds. */
export interface Route {
  readonly thereMs: number;
  readonly backMs: number;
  /** `stored`: it is done, and the answer never comes. `nothing`: it does not even arrive. */
  readonly lost: "no" | "stored" | "nothing";
}

/** One Lease in memory, and the network between it and several processes. */
export interface FakeLeaseServer {
  /** The Lease as that process reaches it. A request under way is not called back when it is aborted. */
  seenBy(process: ProcessClock, route?: (write: boolean) => Route): LeaseStore;
  lease(): StoredLease | undefined;
  /** Somebody writes by hand. */
  edit(change: Partial<LeaseRecord>, annotations?: LeaseAnnotations): void;
  delete(): void;
  /** Called after each write that was stored, by whomever. */
  onWrite: (now: LeaseRecord, before: LeaseRecord | undefined) => void;
  /** Requests so far. */
  readonly requests: number;
  /** No hints reach anybody. */
  silent: boolean;
}

const AT_ONCE: Route = { thereMs: 0, backMs: 0, lost: "no" };

/** Makes a {@link FakeLeaseServer} without a Lease. */
export function createFakeLeaseServer(clock: Clock): FakeLeaseServer {
  let current: StoredLease | undefined;
  let versions = 0;
  let requests = 0;
  const listeners = new Set<(lease: StoredLease | undefined) => void>();

  const put = (record: LeaseRecord, annotations: LeaseAnnotations) => {
    const before = current?.record;
    const merged = { ...current?.annotations };
    for (const [key, value] of Object.entries(annotations)) {
      if (value === null) delete merged[key];
      else merged[key] = value;
    }
    // The real server writes no new version when nothing differs.
    const next = { record, annotations: merged };
    const same = JSON.stringify(next) ===
      JSON.stringify({ record: before, annotations: current?.annotations });
    current = {
      ...next,
      version: same && current !== undefined ? current.version : `v${++versions}`,
    };
    server.onWrite(record, before);
    tell();
    return current;
  };
  const tell = () => {
    if (server.silent) return;
    for (const listener of listeners) listener(current);
  };
  const conflict = (what: string) => new LeaseError("conflict", `Write the Lease: ${what}`);

  const server: FakeLeaseServer = {
    lease: () => current,
    edit(change, annotations = {}) {
      if (current === undefined) throw new Error("Edit the Lease: there is none");
      put({ ...current.record, ...change }, annotations);
    },
    delete() {
      current = undefined;
      tell();
    },
    onWrite: () => {},
    get requests() {
      return requests;
    },
    silent: false,
    seenBy(process, route = () => AT_ONCE) {
      const ask = <T>(write: boolean, signal: AbortSignal, act: () => T): Promise<T> => {
        signal.throwIfAborted();
        requests++;
        const { thereMs, backMs, lost } = route(write);
        const travel = async () => {
          if (lost === "nothing") return await new Promise<never>(() => {});
          if (thereMs > 0) await clock.sleep(thereMs);
          const outcome = outcomeOf(act);
          if (lost === "stored") return await new Promise<never>(() => {});
          if (backMs > 0) await clock.sleep(backMs);
          await process.awake();
          return outcome();
        };
        return abortable(travel(), signal);
      };
      return {
        read: async ({ signal }) => await ask(false, signal, () => current),
        create: async (record, annotations, { signal }) =>
          await ask(true, signal, () => {
            if (current !== undefined) throw conflict("it is there already");
            return put(record, annotations);
          }),
        update: async (version, record, annotations, { signal }) =>
          await ask(true, signal, () => {
            if (current?.version !== version) throw conflict(`not version ${version}`);
            return put(record, annotations);
          }),
        watch(listener, signal) {
          if (signal.aborted) return;
          const hear = async (lease: StoredLease | undefined) => {
            await process.awake();
            if (!signal.aborted) listener(lease);
          };
          const forward = (lease: StoredLease | undefined) => void hear(lease);
          listeners.add(forward);
          onAbort(signal, () => listeners.delete(forward));
        },
      };
    },
  };
  return server;
}

/** What `act` does now, to be given or thrown later. */
function outcomeOf<T>(act: () => T): () => T {
  try {
    const value = act();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
