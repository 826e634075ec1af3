import type { ProcessIdentity } from "../../backends/process/process_identity.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";

/** A {@link ProcessIdentity} in memory. */
export interface FakeProcessIdentity extends ProcessIdentity {
  /** What is bound now. */
  readonly bound: ReadonlyMap<
    ExecutorName,
    { readonly userId: number | null; readonly spiffeId: string }
  >;
  /** Sockets that were handed out and not taken away. */
  readonly endpoints: ReadonlySet<ExecutorName>;
  /** Awaited at the start of each method: throw or wait to interfere. */
  before: ((method: "endpoint" | "bind" | "unbind", signal: AbortSignal) => Promise<void>) | null;
}

/** Makes a {@link FakeProcessIdentity}. */
export function createFakeProcessIdentity(): FakeProcessIdentity {
  const bound = new Map<ExecutorName, { userId: number | null; spiffeId: string }>();
  const endpoints = new Set<ExecutorName>();
  const identity: FakeProcessIdentity = {
    bound,
    endpoints,
    before: null,
    async endpoint(executor, _userId, { signal }) {
      signal.throwIfAborted();
      await identity.before?.("endpoint", signal);
      endpoints.add(executor);
      return `unix:///run/example/${executor}.sock`;
    },
    async bind({ executor, userId, spiffeId }, { signal }) {
      signal.throwIfAborted();
      await identity.before?.("bind", signal);
      bound.set(executor, { userId, spiffeId });
    },
    async unbind(executor, { signal }) {
      signal.throwIfAborted();
      await identity.before?.("unbind", signal);
      bound.delete(executor);
      endpoints.delete(executor);
    },
  };
  return identity;
}
