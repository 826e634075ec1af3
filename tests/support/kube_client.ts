import { onAbort } from "../../lib/abortable.ts";
import { isObject, objectOrEmpty } from "../../lib/json_object.ts";
import type { KubeAccess } from "./kube_access.ts";

/** A Kubernetes object as the API server gives it. */
export type KubeObject = Readonly<Record<string, unknown>>;

/** A change that a watch tells. */
export interface KubeChange {
  readonly kind: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubeObject;
}

/** The API server said no. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly status: number;
  /** The API server's own word. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** Plain REST with every right, for what plays the cluster in a test. */
export interface KubeClient extends Disposable {
  /** Resolves to the answer's JSON; rejects with {@link KubeError} unless it is 2xx. */
  call(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body?: unknown,
  ): Promise<KubeObject>;
  /**
   * Everything at `path` now as `ADDED`, then each change, until aborted. Lists again after the server
   * has ended the watch or has gone away, after half a second.
   */
  watch(path: string, signal: AbortSignal): AsyncIterable<KubeChange>;
}

const AGAIN_MS = 500;
/** A call that has no answer by then is a fault of its own. */
const CALL_MS = 60_000;

/** Makes a {@link KubeClient} with the administrator's certificate; with `as` it acts as that user. */
export async function createKubeClient(
  access: KubeAccess,
  { as }: { readonly as?: string } = {},
): Promise<KubeClient> {
  const [ca, cert, key] = await Promise.all([
    Deno.readTextFile(access.caFile),
    Deno.readTextFile(access.adminCertificate.certFile),
    Deno.readTextFile(access.adminCertificate.keyFile),
  ]);
  const client = Deno.createHttpClient({ caCerts: [ca], cert, key });
  const send = (path: string, init: RequestInit) =>
    fetch(`${access.url}${path}`, { ...init, client });
  const call: KubeClient["call"] = async (method, path, body) => {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const response = await send(path, {
      method,
      signal: AbortSignal.timeout(CALL_MS),
      headers: { "content-type": type, ...as === undefined ? {} : { "impersonate-user": as } },
      ...body === undefined ? {} : { body: JSON.stringify(body) },
    });
    const answer = objectOrEmpty(await response.json());
    if (!response.ok) {
      const message = `${method} "${path}": ${response.status} ${answer.message}`;
      throw new KubeError(response.status, String(answer.reason), message);
    }
    return answer;
  };
  async function* once(path: string, signal: AbortSignal): AsyncGenerator<KubeChange> {
    const list = await call("GET", path);
    for (const object of Array.isArray(list.items) ? list.items : []) {
      if (isObject(object)) yield { kind: "ADDED", object };
    }
    const version = String(objectOrEmpty(list.metadata).resourceVersion);
    const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${version}`;
    const response = await send(`${path}?${query}`, {
      signal,
      headers: { "accept-encoding": "identity" },
    });
    if (!response.ok || response.body === null) {
      throw new KubeError(response.status, "", `Watch "${path}": ${await response.text()}`);
    }
    let rest = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    // Fetch's own tie between signal and body is lost when the `Response` is collected as garbage.
    const giveUp = () => void reader.cancel().catch(() => {});
    await using stack = new AsyncDisposableStack();
    stack.defer(() => reader.cancel().catch(() => {}));
    stack.use(onAbort(signal, giveUp));
    signal.throwIfAborted();
    for (let read; !(read = await reader.read()).done;) {
      const lines = (rest + read.value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { type, object } = objectOrEmpty(JSON.parse(line));
        if (type === "ERROR") return;
        if ((type === "ADDED" || type === "MODIFIED" || type === "DELETED") && isObject(object)) {
          yield { kind: type, object };
        }
      }
    }
  }
  return {
    call,
    async *watch(path, signal) {
      while (!signal.aborted) {
        try {
          yield* once(path, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (error instanceof KubeError && error.status < 500) throw error;
        }
        if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    },
    [Symbol.dispose]: () => client.close(),
  };
}
