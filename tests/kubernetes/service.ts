import { objectOrEmpty } from "../../lib/json_object.ts";
import { createBackgroundTasks } from "../support/background_tasks.ts";
import type { KubeClient, KubeObject } from "../support/kube_client.ts";
import { at, listAt } from "../support/kube_manifests.ts";

/** A Service as a cluster plays it: an address that leads to the Pods that its selector matches. */
export interface ServiceAddress extends AsyncDisposable {
  /** Names of the Pods that new connections go to now. */
  endpoints(): readonly string[];
}

/**
 * Listens on loopback in place of the Service's address and passes each new connection on to a Pod that
 * the Service of the API server selects; closes it when there is none. A connection that is there stays
 * with its Pod, as with kube-proxy.
 */
export async function serveService(
  client: KubeClient,
  service: { readonly namespace: string; readonly name: string },
  options: { readonly port: number; readonly say: (line: string) => void },
): Promise<ServiceAddress> {
  const { namespace, name } = service;
  const object = await client.call("GET", `/api/v1/namespaces/${namespace}/services/${name}`);
  const selector = Object.entries(objectOrEmpty(at(object, "spec", "selector")));
  const targetPort = at(object, "spec", "ports", 0, "targetPort");
  const stop = new AbortController();
  const tasks = createBackgroundTasks((error) => options.say(`service "${name}": ${error}`));
  const pods = new Map<string, KubeObject>();
  tasks.add((async () => {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    for await (const { kind, object } of client.watch(path, stop.signal)) {
      const uid = String(at(object, "metadata", "uid"));
      if (kind === "DELETED") pods.delete(uid);
      else pods.set(uid, object);
    }
  })());
  const selected = () =>
    [...pods.values()].filter((pod) =>
      selector.every(([key, value]) => at(pod, "metadata", "labels", key) === value) &&
      typeof at(pod, "status", "podIP") === "string" && at(pod, "status", "phase") === "Running"
    );
  const portOf = (pod: KubeObject) =>
    listAt(pod, "spec", "containers").flatMap((one) => listAt(one, "ports"))
      .find((port) => at(port, "name") === targetPort || at(port, "containerPort") === targetPort);

  const open = new Set<Deno.TcpConn>();
  const passOn = async (from: Deno.TcpConn) => {
    const [pod] = selected();
    const port = pod === undefined ? undefined : at(portOf(pod), "containerPort");
    if (pod === undefined || port === undefined) return from.close();
    const hostname = String(at(pod, "status", "podIP"));
    const to = await Deno.connect({ hostname, port: Number(port) }).catch(() => undefined);
    if (to === undefined) return from.close();
    open.add(from).add(to);
    await Promise.all([copy(from, to), copy(to, from)]);
    for (const one of [from, to]) {
      open.delete(one);
      close(one);
    }
  };
  const listener = Deno.listen({ hostname: "127.0.0.1", port: options.port });
  tasks.add((async () => {
    for await (const connection of listener) tasks.add(passOn(connection));
  })());
  return {
    endpoints: () => selected().map((pod) => String(at(pod, "metadata", "name"))),
    async [Symbol.asyncDispose]() {
      stop.abort();
      listener.close();
      for (const one of open) close(one);
      await tasks.ended();
    },
  };
}

/** One direction; when it ends, so does the other. */
async function copy(from: Deno.TcpConn, to: Deno.TcpConn): Promise<void> {
  await from.readable.pipeTo(to.writable).catch(() => {
    close(from);
    close(to);
  });
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Closed by its stream.
  }
}
