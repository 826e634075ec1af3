import type { ProcessIdentity } from "../../backends/process/process_identity.ts";
import { createBell, pollChanges } from "../../backends/process/watch.ts";
import {
  type Backend,
  BackendError,
  type BackendErrorCode,
  type Executor,
} from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/logger.ts";
import type { HostSpec } from "./executor_host.ts";

/** What {@link createLightBackend} needs. */
export interface LightBackendOptions {
  /** The executor host's. */
  readonly url: string;
  readonly identity: ProcessIdentity;
  readonly clock: Clock;
  readonly logger: Logger;
}

const POLL_MS = 250;
const CALL_MS = 5_000;

/**
 * A backend whose executors live in another process, as those of a cluster do. Identities are those
 * of the product's own trust domain.
 */
export function createLightBackend(options: LightBackendOptions): Backend {
  const { url, identity, clock, logger } = options;
  const bell = createBell();

  const call = async (
    path: string,
    init: { readonly method: string; readonly body?: unknown },
    signal: AbortSignal,
  ): Promise<Response> => {
    using limit = clock.timeout(CALL_MS);
    try {
      return await fetch(`${url}${path}`, {
        method: init.method,
        signal: AbortSignal.any([signal, limit.signal]),
        ...init.body === undefined ? {} : { body: JSON.stringify(init.body) },
      });
    } catch (cause) {
      signal.throwIfAborted();
      throw new BackendError("unknown_outcome", "Call the executor host: no answer", { cause });
    }
  };
  const failed = async (action: string, response: Response): Promise<BackendError> => {
    const codes: Readonly<Record<number, BackendErrorCode>> = {
      409: "conflict",
      503: "unavailable",
      504: "unknown_outcome",
    };
    const code = codes[response.status] ?? "invalid";
    return new BackendError(code, `${action}: ${response.status} ${await response.text()}`);
  };
  /** Absent is success: what was asked for holds. */
  const change = async (
    method: "PATCH" | "DELETE",
    { name, uid }: Pick<Executor, "name" | "uid">,
    signal: AbortSignal,
  ) => {
    const response = await call(`/executors/${name}?uid=${uid}`, { method }, signal);
    if (!response.ok && response.status !== 404) {
      throw await failed(`${method} executor "${name}"`, response);
    }
    await response.body?.cancel();
    bell.ring();
  };
  const list = async (signal: AbortSignal): Promise<Executor[]> => {
    const response = await call("/executors", { method: "GET" }, signal);
    if (!response.ok) throw await failed("List executors", response);
    return await response.json() as Executor[];
  };
  const find: Backend["find"] = async (name, { signal }) => {
    const response = await call(`/executors/${name}`, { method: "GET" }, signal);
    if (response.ok) return await response.json() as Executor;
    if (response.status !== 404) throw await failed(`Find executor "${name}"`, response);
    await response.body?.cancel();
    return undefined;
  };

  return {
    name: "pod",
    find,
    async create({ name, metadata, environment }, { signal }) {
      const endpoint = await identity.endpoint(name, null, { signal });
      const body: HostSpec = {
        name,
        metadata,
        environment: { ...environment, SPIFFE_ENDPOINT_SOCKET: endpoint },
      };
      const response = await call("/executors", { method: "POST", body }, signal);
      if (!response.ok) throw await failed(`Make executor "${name}"`, response);
      bell.ring();
      return await response.json() as Executor;
    },
    async bindIdentity({ name, uid }, { identity: { spiffeId } }, call) {
      const found = await find(name, call);
      if (found?.uid !== uid) {
        throw new BackendError("conflict", `Bind the identity of executor "${name}": it is gone`);
      }
      await identity.bind({ executor: name, userId: null, spiffeId }, call);
    },
    markTerminal: (executor, { signal }) => change("PATCH", executor, signal),
    list: ({ signal }) => list(signal),
    watch: ({ signal }) => pollChanges(list, { bell, pollMs: POLL_MS, clock, logger, signal }),
    async delete(executor, call) {
      await change("DELETE", executor, call.signal);
      const left = await find(executor.name, call);
      if (left === undefined) await identity.unbind(executor.name, call);
    },
  };
}
