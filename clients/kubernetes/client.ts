import type * as k8s from "@kubernetes/client-node";
import type { KubernetesAccess } from "../../controller/config/config.ts";
import { noRecorder, type Recorder } from "../../controller/recorder.ts";
import type { Clock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import { createHealthKeeper, type SourceHealth } from "../../lib/source_health.ts";
import { createCredentials } from "./credentials.ts";
import { createDeadline } from "./deadline.ts";
import { KubernetesError } from "./error.ts";
import { type CallOptions, callOptions, configurationOf, PATCH_TYPES } from "./generated.ts";
import { kubeconfigReader } from "./kubeconfig.ts";
import { serviceAccountReader } from "./material.ts";
import { createTransport, late, malformed, Refused } from "./transport.ts";
import { createTurns } from "./turns.ts";
import { listAndWatch, type WatchEvent, type WatchTarget } from "./watch.ts";
import { type Collection, listAll, Lost, type PlainObject } from "./watch_protocol.ts";

export type { CallOptions };

/** How one call is made. */
export interface Call {
  readonly signal: AbortSignal;
  /** For everything that `run` does, waiting for its turn included; 10 s by default. */
  readonly timeoutMs?: number;
  /** What a PATCH holds; without it the server would read JSON Patch. */
  readonly patch?: keyof typeof PATCH_TYPES;
}

/**
 * The API server, by generated API classes over connections that are shared. Give the elector one of
 * its own, so that no burst of other calls holds up the renewal of its lease.
 */
export interface Kubernetes extends AsyncDisposable {
  readonly core: k8s.CoreV1Api;
  readonly coordination: k8s.CoordinationV1Api;
  readonly customObjects: k8s.CustomObjectsApi;
  readonly events: k8s.EventsV1Api;
  readonly authorization: k8s.AuthorizationV1Api;
  readonly authentication: k8s.AuthenticationV1Api;
  /**
   * Runs `run` with options that it must pass on to each generated method that it calls. Rejects with
   * the signal's reason when the caller aborts, otherwise with a {@link KubernetesError}, whose message
   * begins with `action` (`Create Pod "x"`). What `run` throws itself is passed on.
   */
  call<T>(action: string, run: (options: CallOptions) => Promise<T>, call: Call): Promise<T>;
  /**
   * One request in plain JSON, for objects with fields that the generated classes do not know: they
   * would drop them without a word. Rejects as {@link Kubernetes.call} does.
   */
  request(action: string, request: PlainRequest, call: Call): Promise<PlainObject>;
  /** Everything in a collection, of one moment, as plain JSON. Rejects as {@link Kubernetes.call} does. */
  listAll(action: string, collection: Collection, call: Call): Promise<readonly PlainObject[]>;
  /**
   * Lists and then watches until `signal` aborts; see `watch.ts`. Objects come as plain JSON (times are
   * strings there, where generated methods give `Date`).
   */
  listAndWatch<T>(
    target: WatchTarget<T>,
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<WatchEvent<T>, void>;
  status(): SourceHealth;
}

/** What {@link Kubernetes.request} sends. */
export interface PlainRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: PlainObject;
}

/** What {@link createKubernetes} needs. */
export interface KubernetesOptions {
  readonly clock: Clock;
  readonly logger?: Logger;
  readonly random?: () => number;
  readonly recorder?: Pick<Recorder, "watchEvent">;
  /** Calls under way at a time, each on a connection; others wait in order. Watches do not count. */
  readonly maxCalls?: number;
  readonly userAgent?: string;
  /**
   * Called right before anything but a GET leaves, after all waiting, and again for its repetition: it
   * throws when this process may not act any more. The call rejects with that, and nothing is sent.
   */
  before?(): void;
}

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_CALLS = 16;

/**
 * Makes {@link Kubernetes}; speaks with nobody yet. Loads the client library here and not before, which
 * costs some 90 MiB. Rejects when the credentials cannot be read.
 */
export async function createKubernetes(
  access: KubernetesAccess,
  options: KubernetesOptions,
): Promise<Kubernetes> {
  const { clock, logger = silentLogger, random = Math.random, recorder = noRecorder } = options;
  const library = await import("@kubernetes/client-node");
  const read = access.kind === "service_account"
    ? serviceAccountReader(access)
    : kubeconfigReader(access.path, library.loadYaml);
  const credentials = await createCredentials(read, { clock, logger });
  const userAgent = options.userAgent ?? "gitea-dynamic-runner";
  const transport = await createTransport(credentials, {
    clock,
    userAgent,
    ...options.before === undefined ? {} : { before: options.before },
  });
  const turns = createTurns(options.maxCalls ?? DEFAULT_MAX_CALLS);
  const keeper = createHealthKeeper(clock);
  const configuration = configurationOf(library, transport);
  const closing = new AbortController();
  const apis = new Map<unknown, unknown>();
  const api = <T extends k8s.ApiType>(type: new (configuration: k8s.Configuration) => T): T => {
    const known = apis.get(type);
    if (known instanceof type) return known;
    const made = new type(configuration);
    apis.set(type, made);
    return made;
  };

  /** The error that the caller gets, noted in the client's health; what `run` threw itself stays as it is. */
  const judge = (action: string, error: unknown, deadline: AbortSignal, ms: number) => {
    const failure = error instanceof Refused
      ? error.failure
      : error instanceof Lost
      ? malformed(error.message)
      : deadline.aborted
      ? late(ms)
      : error instanceof SyntaxError
      ? malformed("broken JSON")
      : null;
    if (failure === null) return error;
    const judged = new KubernetesError(action, failure, { cause: error });
    if (judged.unanswered) keeper.failed(judged);
    else keeper.ok();
    return judged;
  };

  /** One call of any kind: its turn, its deadline, its verdict. Every method but the watch goes through it. */
  const attempt = async <T>(
    action: string,
    run: (signal: AbortSignal) => Promise<T>,
    { signal, timeoutMs }: Call,
  ): Promise<T> => {
    const ms = timeoutMs ?? DEFAULT_TIMEOUT_MS;
    signal.throwIfAborted();
    closing.signal.throwIfAborted();
    using deadline = createDeadline(clock, ms);
    const stop = AbortSignal.any([signal, closing.signal, deadline.signal]);
    try {
      using _turn = await turns.take(stop);
      const result = await run(stop);
      keeper.ok();
      return result;
    } catch (error) {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      throw judge(action, error, deadline.signal, ms);
    }
  };

  return {
    get core() {
      return api(library.CoreV1Api);
    },
    get coordination() {
      return api(library.CoordinationV1Api);
    },
    get customObjects() {
      return api(library.CustomObjectsApi);
    },
    get events() {
      return api(library.EventsV1Api);
    },
    get authorization() {
      return api(library.AuthorizationV1Api);
    },
    get authentication() {
      return api(library.AuthenticationV1Api);
    },
    call(action, run, call) {
      const type = call.patch === undefined ? null : PATCH_TYPES[call.patch];
      return attempt(action, (signal) => run(callOptions(library, signal, type)), call);
    },
    request: (action, { method, path, body }, call) =>
      attempt(action, async (signal) => {
        const { text } = await transport.exchange({
          method,
          url: path,
          ...body === undefined ? {} : {
            headers: { "content-type": "application/json" },
            body: JSON.stringify(body),
          },
        }, signal);
        return objectOrEmpty(JSON.parse(text));
      }, call),
    listAll: (action, collection, call) =>
      attempt(action, async (signal) => {
        return (await listAll(collection, { transport, clock, signal })).objects;
      }, call),
    listAndWatch: (target, { signal }) =>
      listAndWatch(target, {
        signal: AbortSignal.any([signal, closing.signal]),
        transport,
        clock,
        random,
        logger,
        recorder,
        keeper,
      }),
    status: () => keeper.status(),
    [Symbol.asyncDispose]() {
      closing.abort(new DOMException("The Kubernetes client is closed", "AbortError"));
      transport[Symbol.dispose]();
      return Promise.resolve();
    },
  };
}
