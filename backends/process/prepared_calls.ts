import { BackendError } from "../../controller/backend.ts";
import { messageOf } from "../../lib/error_text.ts";

/** Calls of a backend on what has to be prepared first. Disposing waits for those under way. */
export interface PreparedCalls<T> extends AsyncDisposable {
  /** Runs one. Rejects with {@link BackendError}, worded by its `action`, or the signal's reason. */
  call<R>(action: string, signal: AbortSignal, run: (prepared: T) => Promise<R>): Promise<R>;
}

/** Makes a {@link PreparedCalls}; `prepare` runs with the first call, and again after it has failed. */
export function createPreparedCalls<T>(prepare: () => Promise<T>): PreparedCalls<T> {
  const underway = new Set<Promise<unknown>>();
  let prepared: Promise<T> | undefined;
  const ready = (): Promise<T> => {
    prepared ??= prepare().catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };
  return {
    call(action, signal, run) {
      const result = (async () => {
        signal.throwIfAborted();
        try {
          return await run(await ready());
        } catch (error) {
          signal.throwIfAborted();
          throw toBackendError(action, error);
        }
      })();
      underway.add(result);
      const forget = () => void underway.delete(result);
      result.then(forget, forget);
      return result;
    },
    async [Symbol.asyncDispose]() {
      while (underway.size > 0) await Promise.allSettled([...underway]);
    },
  };
}

function toBackendError(action: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const refused = error instanceof Deno.errors.PermissionDenied ||
    error instanceof Deno.errors.NotCapable;
  return new BackendError(refused ? "refused" : "unavailable", `${action}: ${messageOf(error)}`, {
    cause: error,
  });
}
