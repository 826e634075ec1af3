import {
  LeaseError,
  type LeaseErrorCode,
  type LeaseRecord,
  type LeaseStore,
  type StoredLease,
} from "../../controller/leadership/lease.ts";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";
import type { Logger } from "../../lib/logger.ts";
import { createTaskGroup } from "../../lib/task_group.ts";
import type { CallOptions, Kubernetes } from "./client.ts";
import { KubernetesError } from "./error.ts";

/** Which Lease. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Shorter than the 5 s (half the renew deadline) after which `controller/leadership/lease_claim.ts` aborts a request.
 * An abort of the caller's says nothing of the connection; only this deadline retires silent ones
 * (`deadline.ts`), so that the next try meets new ones.
 */
const TIMEOUT_MS = 4_500;
const GROUP = { group: "coordination.k8s.io", version: "v1", plural: "leases" };

/**
 * A Lease at the API server. Disposing ends its watches.
 *
 * The class for custom resources serves this built-in one, too: it passes JSON on as it is, where the
 * typed one would cut times to milliseconds. Writes are merge patches with the resourceVersion that
 * they replace (409 when that is not the newest), where client-go puts back the whole object as it saw
 * it: both leave labels, owners and fields of others as they are. Rights: get, create, patch, list and
 * watch of leases.
 */
export function createLeaseStore(
  kubernetes: Pick<Kubernetes, "customObjects" | "call" | "listAndWatch">,
  { namespace, name, logger }: LeaseName & { readonly logger: Logger },
): LeaseStore & AsyncDisposable {
  const tasks = createTaskGroup(logger);
  const what = `Lease "${namespace}/${name}"`;
  const one = { ...GROUP, namespace, name };

  const write = async (
    action: string,
    call: Parameters<Kubernetes["call"]>[2],
    send: (options: CallOptions) => Promise<unknown>,
  ): Promise<StoredLease> => {
    try {
      const timed = { ...call, timeoutMs: TIMEOUT_MS };
      return readLease(action, await kubernetes.call(action, send, timed));
    } catch (error) {
      throw leaseError(error);
    }
  };

  return {
    async read({ signal }) {
      const action = `Read ${what}`;
      try {
        const found: unknown = await kubernetes.call(
          action,
          (options) => kubernetes.customObjects.getNamespacedCustomObject(one, options),
          { signal, timeoutMs: TIMEOUT_MS },
        );
        return readLease(action, found);
      } catch (error) {
        if (error instanceof KubernetesError && error.status === 404) return undefined;
        throw leaseError(error);
      }
    },
    create(record, annotations, call) {
      const set = Object.entries(annotations).filter(([, value]) => value !== null);
      const body = {
        apiVersion: `${GROUP.group}/${GROUP.version}`,
        kind: "Lease",
        metadata: { name, namespace, annotations: Object.fromEntries(set) },
        spec: specOf(record),
      };
      return write(
        `Create ${what}`,
        call,
        (options) =>
          kubernetes.customObjects.createNamespacedCustomObject({ ...one, body }, options),
      );
    },
    update(version, record, annotations, { signal }) {
      const body = { metadata: { resourceVersion: version, annotations }, spec: specOf(record) };
      return write(
        `Write ${what}`,
        { signal, patch: "merge" },
        (options) =>
          kubernetes.customObjects.patchNamespacedCustomObject({ ...one, body }, options),
      );
    },
    watch(listener, signal) {
      tasks.spawn("watch the lease", async (closing) => {
        const events = kubernetes.listAndWatch({
          source: "leases",
          path: `/apis/${GROUP.group}/${GROUP.version}/namespaces/${namespace}/leases`,
          fieldSelector: `metadata.name=${name}`,
          decode: (object) => readLease(`Watch ${what}`, object),
        }, { signal: AbortSignal.any([signal, closing]) });
        for await (const event of events) {
          if (event.kind === "listed") listener(event.items[0]);
          else listener(event.kind === "gone" ? undefined : event.item);
        }
      });
    },
    [Symbol.asyncDispose]: () => tasks[Symbol.asyncDispose](),
  };
}

/** A caller's abort passes as it is. */
function leaseError(error: unknown): unknown {
  if (!(error instanceof KubernetesError)) return error;
  return new LeaseError(codeOf(error), error.message, { cause: error });
}

/** AlreadyExists and Conflict are both 409; writing a Lease that is gone is 404. */
function codeOf(error: KubernetesError): LeaseErrorCode {
  if (error.status === 409 || error.status === 404) return "conflict";
  // A token that has just expired is renewed with the next call.
  return error.retryable || error.status === 401 ? "unavailable" : "refused";
}

function specOf(record: LeaseRecord) {
  return {
    holderIdentity: record.holder,
    leaseDurationSeconds: record.durationSeconds,
    acquireTime: record.acquireTime,
    renewTime: record.renewTime,
    leaseTransitions: record.transitions,
  };
}

function readLease(action: string, object: unknown): StoredLease {
  const { metadata, spec } = objectOrEmpty(object);
  const { resourceVersion, annotations } = objectOrEmpty(metadata);
  if (typeof resourceVersion !== "string" || resourceVersion === "") {
    throw new LeaseError("unavailable", `${action}: the answer is no Lease`);
  }
  const { holderIdentity, leaseDurationSeconds, leaseTransitions, ...times } = objectOrEmpty(spec);
  return {
    version: resourceVersion,
    annotations: isObject(annotations)
      ? Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)]))
      : {},
    record: {
      holder: typeof holderIdentity === "string" ? holderIdentity : "",
      durationSeconds: typeof leaseDurationSeconds === "number" ? leaseDurationSeconds : null,
      acquireTime: textOrNull(times.acquireTime),
      renewTime: textOrNull(times.renewTime),
      transitions: typeof leaseTransitions === "number" ? leaseTransitions : 0,
    },
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
