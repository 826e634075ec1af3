import type { Gitea } from "../../controller/gitea.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Secret } from "../../lib/secret.ts";
import { RunnerService } from "../../proto/gen/runner/v1/services_pb.ts";
import { connectClient } from "../connect/client.ts";
import { againIfInternal, callWithin } from "./call.ts";
import { inspectFetch } from "./inspect_fetch.ts";

/** Where Gitea is and who we are there. */
export interface GiteaOptions {
  /** Base URL (Gitea's ROOT_URL), with or without a trailing slash; may have a path. */
  readonly url: string;
  /** Of the permanent registration. */
  readonly uuid: string;
  /** Of the permanent registration. */
  readonly token: Secret;
  readonly clock?: Clock;
  /** For tests; by default an HTTP/1.1 client of its own. */
  readonly fetch?: typeof globalThis.fetch;
  /** Called at the moment of sending, also of a repetition; what it throws is thrown, and nothing is sent. */
  guard?(): void;
}

/** {@link createGitea}'s client. */
export interface GiteaClient extends Gitea, AsyncDisposable {
  /** Gitea's number of our runner, as the last Declare told it; null before. */
  runnerId(): string | null;
}

/** How long a call may take, milliseconds. */
const DEADLINES = {
  declare: 10_000,
  fetch: 10_000,
  update: 30_000,
  // Whoever starts the program waits for the word: nothing is lost when it comes too soon.
  check: 8_000,
};

/**
 * Gitea itself is told to give up on a fetch this much before we do. A task that it has assigned but
 * could not answer with is lost until its zombie time-out, whereas a fetch that it ends itself is
 * rolled back.
 */
const FETCH_MARGIN_MS = 2_000;

/**
 * Gitea's RunnerService by Connect at `<url>/api/actions`, as the runner `uuid`. Deadlines: 10 s for
 * `declare` and `fetchTask`, 30 s for updates, 8 s for the check of the registration. Every method rejects with `GiteaError`, or with the
 * signal's reason when that aborts. Disposing ends the calls in flight and closes its connections.
 */
export function createGitea(options: GiteaOptions): GiteaClient {
  const url = options.url.replace(/\/+$/, "");
  const clock = options.clock ?? systemClock;
  const closing = new AbortController();
  const connections = options.fetch === undefined ? ownConnections() : undefined;
  const send = options.fetch ?? connections?.fetch ?? globalThis.fetch;
  const fetch: typeof send = async (input, init) => {
    options.guard?.();
    return await send(input, init);
  };
  const at = (action: string, deadlineMs: number) => {
    const attempt = { action, url };
    return {
      client: connectClient(RunnerService, {
        baseUrl: `${url}/api/actions`,
        fetch: inspectFetch(fetch, attempt),
        headers: () => ({
          "x-runner-uuid": options.uuid,
          "x-runner-token": options.token.reveal(),
        }),
      }),
      within: <T>(signal: AbortSignal, operation: (signal: AbortSignal) => Promise<T>) =>
        callWithin(operation, {
          attempt,
          deadlineMs,
          clock,
          signal: AbortSignal.any([signal, closing.signal]),
        }),
    };
  };
  const declaring = at("declare labels at", DEADLINES.declare);
  const fetching = at("fetch a task from", DEADLINES.fetch);
  const updating = at("report a task's state to", DEADLINES.update);
  const checking = at("check the registration at", DEADLINES.check);
  const logging = at("send log rows to", DEADLINES.update);
  let runnerId: string | null = null;
  return {
    async declare(runner, { signal }) {
      let serverCapabilities: string | null = null;
      const message = {
        version: runner.version,
        labels: [...runner.labels],
        capabilities: [...runner.capabilities],
      };
      const { runner: declared } = await declaring.within(
        signal,
        (signal) =>
          declaring.client.declare(message, {
            signal,
            onHeader: (headers) => {
              serverCapabilities = headers.get("x-gitea-actions-capabilities");
            },
          }),
      );
      if (declared !== undefined && declared.id > 0n) runnerId = String(declared.id);
      return { serverCapabilities };
    },
    runnerId: () => runnerId,
    fetchTask(tasksVersion, { signal }) {
      const headers = { "connect-timeout-ms": String(DEADLINES.fetch - FETCH_MARGIN_MS) };
      return fetching.within(
        signal,
        (signal) => fetching.client.fetchTask({ tasksVersion }, { signal, headers }),
      );
    },
    updateTask({ state, outputs }, { signal }) {
      const message = { state, outputs: { ...outputs } };
      // No task has the number 0: with it only the credentials are put to the test.
      const { within, client } = state?.id === 0n ? checking : updating;
      return within(signal, (signal) => client.updateTask(message, { signal }));
    },
    updateLog({ taskId, index, rows, noMore }, { signal }) {
      const message = { taskId, index, rows: [...rows], noMore };
      return againIfInternal(
        () => logging.within(signal, (signal) => logging.client.updateLog(message, { signal })),
        { clock, signal },
      );
    },
    [Symbol.asyncDispose]() {
      closing.abort(new DOMException("Gitea client closed", "AbortError"));
      connections?.close();
      return Promise.resolve();
    },
  } satisfies GiteaClient;
}

/** Kept connections to a Gitea that vanished without a word, with its node, cost one call each. */
const IDLE_MS = 20_000;

/** HTTP/1.1 only: uploads through HTTP/2 are slow here. */
function ownConnections(): { fetch: typeof globalThis.fetch; close(): void } {
  const client = Deno.createHttpClient({ http1: true, http2: false, poolIdleTimeout: IDLE_MS });
  return {
    fetch: (input, init) => globalThis.fetch(input, { ...init, client }),
    close: () => client.close(),
  };
}
