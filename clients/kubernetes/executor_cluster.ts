import {
  ClusterError,
  type ClusterErrorCode,
  type ExecutorCluster,
  type IdentityEntry,
  type PodChange,
} from "../../backends/pod/cluster.ts";
import { podOf, texts } from "../../backends/pod/pod.ts";
import type { Call } from "../../controller/backend.ts";
import type { Clock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import type { CallOptions, Kubernetes } from "./client.ts";
import { KubernetesError } from "./error.ts";
import { createPace, type Pace } from "./pace.ts";
import type { PlainObject } from "./watch_protocol.ts";

/** Resource of SPIRE's identity entries (cluster-scoped). */
const ENTRIES = {
  group: "spire.spiffe.io",
  version: "v1alpha1",
  plural: "clusterstaticentries",
} as const;
const ENTRIES_PATH = `/apis/${ENTRIES.group}/${ENTRIES.version}/${ENTRIES.plural}`;
const COMPONENT = "gitea-dynamic-runner";
const MAX_EVENTS = 100;
/** A list of a thousand Pods is some MiB. */
const LIST_TIMEOUT_MS = 30_000;

/**
 * {@link ExecutorCluster} on an API server, with the Pods of one namespace. Lists of the same
 * kind are one at a time and `listSpacingMs` apart, whoever asks for them; 0 when it is not given.
 */
export function createExecutorCluster(
  kubernetes: Kubernetes,
  options: { readonly namespace: string; readonly clock: Clock; readonly listSpacingMs?: number },
): ExecutorCluster {
  const { namespace, clock, listSpacingMs = 0 } = options;
  const podLists = createPace(clock, listSpacingMs);
  const entryLists = createPace(clock, listSpacingMs);
  const podsPath = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;

  const call = <T>(
    action: string,
    run: (options: CallOptions) => Promise<T>,
    call: Parameters<Kubernetes["call"]>[2],
  ): Promise<T> => translated(action, kubernetes.call(action, run, call));

  const list = async (
    { what, path, pace }: { readonly what: string; readonly path: string; readonly pace: Pace },
    labels: Readonly<Record<string, string>>,
    { signal }: Call,
  ) => {
    const collection = { path, labelSelector: selectorOf(labels) };
    const options = { signal, timeoutMs: LIST_TIMEOUT_MS };
    const action = `List ${what}`;
    const work = () => kubernetes.listAll(action, collection, options);
    return await translated(action, pace(work, signal));
  };

  const pods = { what: "Pods", path: podsPath, pace: podLists };
  const entries = { what: "ClusterStaticEntries", path: ENTRIES_PATH, pace: entryLists };

  return {
    async listPods(labels, options) {
      return (await list(pods, labels, options)).map(podOf);
    },
    async *watchPods(labels, { signal }): AsyncGenerator<PodChange> {
      const target = {
        source: "pods",
        path: podsPath,
        labelSelector: selectorOf(labels),
        decode: podOf,
        listPace: podLists,
      };
      for await (const event of kubernetes.listAndWatch(target, { signal })) {
        switch (event.kind) {
          case "listed":
            yield { kind: "all", pods: event.items };
            break;
          case "changed":
            yield { kind: "changed", pod: event.item };
            break;
          case "gone":
            yield { kind: "removed", pod: event.item };
            break;
          default:
            event satisfies never;
        }
      }
    },
    async getPod(name, { signal }) {
      const found = await present(call(
        `Read Pod "${name}"`,
        (options) => kubernetes.core.readNamespacedPod({ name, namespace }, options),
        { signal },
      ));
      return found === undefined ? undefined : podOf(found);
    },
    async createPod(manifest, { signal }) {
      const metadata = objectOrEmpty(manifest.metadata);
      const request = {
        method: "POST",
        path: `${podsPath}?fieldValidation=Strict`,
        body: { ...manifest, metadata: { ...metadata, namespace } },
      };
      const action = `Create Pod "${String(metadata.name)}"`;
      return podOf(await translated(action, kubernetes.request(action, request, { signal })));
    },
    async deletePod({ name, uid, graceSeconds }, { signal }) {
      const body = {
        preconditions: { uid },
        ...graceSeconds === null ? {} : { gracePeriodSeconds: graceSeconds },
      };
      const left = await call(
        `Delete Pod "${name}"`,
        (options) => kubernetes.core.deleteNamespacedPod({ name, namespace, body }, options),
        { signal },
      );
      const pod = podOf(left);
      return pod.uid === uid ? pod : undefined;
    },
    async labelPod({ name, uid, labels }, { signal }) {
      // A UID in a patch is a precondition, because it cannot be changed.
      const body = { metadata: { uid, labels } };
      try {
        await call(
          `Label Pod "${name}"`,
          (options) => kubernetes.core.patchNamespacedPod({ name, namespace, body }, options),
          { signal, patch: "merge" },
        );
      } catch (error) {
        if (
          error instanceof ClusterError && error.code === "invalid" && /uid/i.test(error.message)
        ) {
          throw new ClusterError("conflict", error.message, { cause: error });
        }
        throw error;
      }
    },
    async listEntries(labels, options) {
      return (await list(entries, labels, options)).map(entryOf);
    },
    async getEntry(name, { signal }) {
      const found = await present(call(
        `Read ClusterStaticEntry "${name}"`,
        (options) => kubernetes.customObjects.getClusterCustomObject({ ...ENTRIES, name }, options),
        { signal },
      ));
      return found === undefined ? undefined : entryOf(found);
    },
    async createEntry({ name, labels, spec }, { signal }) {
      const body = {
        apiVersion: `${ENTRIES.group}/${ENTRIES.version}`,
        kind: "ClusterStaticEntry",
        metadata: { name, labels },
        spec,
      };
      await call(
        `Create ClusterStaticEntry "${name}"`,
        (options) =>
          kubernetes.customObjects.createClusterCustomObject({ ...ENTRIES, body }, options),
        { signal },
      );
    },
    async deleteEntry({ name, uid }, { signal }) {
      const body = { preconditions: { uid } };
      await call(
        `Delete ClusterStaticEntry "${name}"`,
        (options) =>
          kubernetes.customObjects.deleteClusterCustomObject({ ...ENTRIES, name, body }, options),
        { signal },
      );
    },
    async nodeUid(name, { signal }) {
      const node = await present(call(
        `Read Node "${name}"`,
        (options) => kubernetes.core.readNode({ name }, options),
        { signal },
      ));
      return node?.metadata?.uid;
    },
    async listPodEvents({ name, uid }, { signal }) {
      const { items } = await call(
        `List the events of Pod "${name}"`,
        (options) =>
          kubernetes.core.listNamespacedEvent({
            namespace,
            fieldSelector: `involvedObject.kind=Pod,involvedObject.uid=${uid}`,
            limit: MAX_EVENTS,
          }, options),
        { signal },
      );
      return items
        .map((event) => ({
          at: timeOf(event.lastTimestamp ?? event.eventTime ?? event.metadata?.creationTimestamp),
          type: event.type === "Warning" ? "Warning" as const : "Normal" as const,
          reason: event.reason ?? "",
          message: event.message ?? "",
        }))
        .sort((a, b) => a.at - b.at)
        .map(({ type, reason, message }) => ({ type, reason, message }));
    },
    async emitPodEvent({ name, uid }, { type, reason, message }, { signal }) {
      const at = new Date(clock.now());
      const body = {
        metadata: { generateName: `${name}.`, namespace },
        involvedObject: { apiVersion: "v1", kind: "Pod", name, namespace, uid },
        type,
        reason,
        message,
        source: { component: COMPONENT },
        reportingComponent: COMPONENT,
        reportingInstance: COMPONENT,
        firstTimestamp: at,
        lastTimestamp: at,
        count: 1,
      };
      await call(
        `Write an event of Pod "${name}"`,
        (options) => kubernetes.core.createNamespacedEvent({ namespace, body }, options),
        { signal },
      );
    },
  };
}

function entryOf(value: unknown): IdentityEntry {
  const object: PlainObject = objectOrEmpty(value);
  const metadata = objectOrEmpty(object.metadata);
  const spec = objectOrEmpty(object.spec);
  const status = objectOrEmpty(object.status);
  const selectors = Array.isArray(spec.selectors)
    ? spec.selectors.filter((each) => typeof each === "string")
    : [];
  return {
    name: String(metadata.name ?? ""),
    uid: String(metadata.uid ?? ""),
    labels: texts(metadata.labels),
    spec: { ...texts(spec), selectors },
    rendered: status.rendered === true,
    masked: status.masked === true,
  };
}

function selectorOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`).join(",");
}

function timeOf(value: unknown): number {
  return value instanceof Date ? value.getTime() : Date.parse(String(value)) || 0;
}

/** Undefined in place of `not_found`. */
async function present<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ClusterError && error.code === "not_found") return undefined;
    throw error;
  }
}

async function translated<T>(action: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error;
    // The backend says what was being done in its own words.
    const words = error.message.slice(`${action}: `.length);
    throw new ClusterError(codeOf(error), words, { cause: error });
  }
}

function codeOf(error: KubernetesError): ClusterErrorCode {
  switch (error.status) {
    case 400:
    case 422:
      return "invalid";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 409:
      return error.reason === "AlreadyExists" ? "already_exists" : "conflict";
    case 429:
      return "throttled";
    default:
      return "unknown_outcome";
  }
}
