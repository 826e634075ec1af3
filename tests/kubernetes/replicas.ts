import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { eventually } from "../support/eventually.ts";
import { isObject } from "../../lib/json_object.ts";
import { at } from "../support/kube_manifests.ts";
import { run } from "../support/process.ts";
import { type Cluster, LISTEN, NAMESPACE } from "./cluster.ts";

/** What a test changes of a controller's Pod. */
export interface ReplicaOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A ConfigMap of its namespace, mounted at `/config`. */
  readonly configMap?: string;
}

/** The controllers' Pods, as a Deployment's controllers would make them. */
export interface Replicas {
  /** Makes one more of the Deployment's template; resolves to its name when it is ready. */
  add(options?: ReplicaOptions): Promise<string>;
  /** Deletes it as a roll-out does; resolves when it is gone. */
  remove(name: string): Promise<void>;
  /** JSON of a path of its dashboard's API. */
  get(name: string, path: string): Promise<unknown>;
  /** Name of the Pod with the leader's label; rejects when there is none within 30 s. */
  leader(): Promise<string>;
  /** Lines of its log that are JSON. */
  log(name: string): Promise<Readonly<Record<string, unknown>>[]>;
}

const root = new URL("../../", import.meta.url).pathname;
const READY_MS = 60_000;

/** The administrator of the cluster's Gitea. */
export function giteaOf({ peers }: Cluster, signal: AbortSignal): GiteaApi {
  return createGiteaApi({
    url: peers.gitea.rootUrl,
    user: peers.gitea.admin.name,
    password: peers.gitea.admin.password,
    token: peers.gitea.token,
    signal,
  });
}

/** Registers at Gitea with our own tool and makes the Secret that the Deployment mounts. */
export async function makeSecret(
  cluster: Cluster,
  gitea: GiteaApi,
  namespace = NAMESPACE.controller,
): Promise<void> {
  const { peers } = cluster;
  const out = await Deno.makeTempDir({ dir: peers.folder });
  const tool = ["run", "-A", "tools/register.ts", "--url", peers.gitea.rootUrl];
  await run(Deno.execPath(), [...tool, "--name", namespace, "--out", `${out}/env`], {
    cwd: root,
    env: { REGISTRATION_TOKEN: await gitea.registrationToken() },
  });
  await peers.kube.kubectl([
    ...["create", "secret", "generic", "controller", "-n", namespace],
    `--from-file=${out}/GITEA_RUNNER_UUID`,
    `--from-file=${out}/GITEA_RUNNER_TOKEN`,
    `--from-literal=CAPABILITY_KEY=${crypto.randomUUID()}${crypto.randomUUID()}`,
    "--from-literal=NATS_USER=controller",
    `--from-literal=NATS_PASSWORD=${NATS_PASSWORD}`,
  ]);
}

/** Of the NATS of {@link NATS_AUTHORIZATION}. */
export const NATS_PASSWORD = "password-of-nats-1";
/** Lines of nats-server's configuration, as the shipped one has them. */
export const NATS_AUTHORIZATION =
  `authorization { user: controller, password: "${NATS_PASSWORD}" }`;

/** Makes {@link Replicas} of the Deployment in `namespace`. */
export function createReplicas(cluster: Cluster, namespace = NAMESPACE.controller): Replicas {
  const { client, kubelet } = cluster;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const urlOf = (name: string, port: number, path: string) => {
    const ip = kubelet.pod(name)?.ip;
    if (ip === undefined) throw new Error(`No Pod "${name}"`);
    return `http://${ip}:${port}${path}`;
  };
  const fetched = async (url: string) => {
    const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
    const text = await response.text();
    if (!response.ok) throw new Error(`Get "${url}": ${response.status} ${text.slice(0, 200)}`);
    return text;
  };
  const replicas: Replicas = {
    async add({ env = {}, configMap } = {}) {
      const deployment = await client.call(
        "GET",
        `/apis/apps/v1/namespaces/${namespace}/deployments/controller`,
      );
      const template = at(deployment, "spec", "template");
      if (!isObject(template)) throw new Error("The Deployment has no template");
      const spec = structuredClone(template.spec) as {
        containers: { env: unknown[]; volumeMounts: unknown[] }[];
        volumes: unknown[];
      };
      for (const [name, value] of Object.entries(env)) {
        spec.containers[0]?.env.push({ name, value });
      }
      if (configMap !== undefined) {
        spec.volumes.push({ name: "config", configMap: { name: configMap } });
        spec.containers[0]?.volumeMounts.push({ name: "config", mountPath: "/config" });
      }
      const labels = at(template, "metadata", "labels");
      const made = await client.call("POST", pods, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { generateName: "controller-", labels },
        spec,
      });
      const name = String(at(made, "metadata", "name"));
      await eventually(() => fetched(urlOf(name, LISTEN.health, "/readyz")), {
        what: `"${name}" to be ready`,
        timeoutMs: READY_MS,
        everyMs: 100,
      }).catch(async (cause) => {
        const log = await kubelet.pod(name)?.log("controller").catch(() => "") ?? "";
        const end = log.trimEnd().split("\n").slice(-12).join("\n");
        throw new Error(
          `${cause instanceof Error ? cause.message : cause}; its last lines:\n${end}`,
        );
      });
      return name;
    },
    async remove(name) {
      await client.call("DELETE", `${pods}/${name}`, {});
      await eventually(() => kubelet.pod(name) === undefined, {
        what: `the end of "${name}"`,
        timeoutMs: 75_000,
        everyMs: 50,
      });
    },
    async get(name, path) {
      return JSON.parse(await fetched(urlOf(name, LISTEN.admin, path)));
    },
    leader: () =>
      eventually(async () => {
        const selector = encodeURIComponent("ci.ddupan.top/leader=true");
        const { items } = await client.call("GET", `${pods}?labelSelector=${selector}`);
        const names = (Array.isArray(items) ? items : []).map((pod) => at(pod, "metadata", "name"));
        if (names.length > 1) throw new Error(`Several lead: ${names.join(", ")}`);
        return names.length === 1 && String(names[0]);
      }, { what: "a Pod with the leader's label", timeoutMs: 30_000, everyMs: 100 }),
    async log(name) {
      const text = await kubelet.pod(name)?.log("controller") ?? "";
      return text.split("\n").flatMap((line) => {
        try {
          const value: unknown = JSON.parse(line);
          return isObject(value) ? [value] : [];
        } catch {
          return [];
        }
      });
    },
  };
  return replicas;
}
