import { isObject } from "../../lib/json_object.ts";
import { eventually } from "../support/eventually.ts";
import { createGiteaApi, type GiteaApi } from "../support/gitea_api.ts";
import { imageConfig, parseDockerfile } from "../support/kube_dockerfile.ts";
import { at } from "../support/kube_manifests.ts";
import type { Peers } from "../support/peers.ts";
import { run } from "../support/process.ts";
import { type Cluster, type Installation, LISTEN } from "./cluster.ts";

/** What a test changes of a controller's Pod. */
export interface ReplicaOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A ConfigMap of its namespace, mounted at `/config`. */
  readonly configMap?: string;
  /** Files of the repository that are run in the process before the program. */
  readonly preload?: readonly string[];
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
/** Of a machine that starts fifty executors at the time. */
const READY_MS = 180_000;

/** The administrator of a Gitea. */
export function giteaOf({ gitea }: Pick<Peers, "gitea">, signal: AbortSignal): GiteaApi {
  return createGiteaApi({
    url: gitea.rootUrl,
    user: gitea.admin.name,
    password: gitea.admin.password,
    token: gitea.token,
    signal,
  });
}

/** Registers at Gitea with our own tool and makes the Secret that the Deployment mounts. */
export async function makeSecret(
  { peers }: Cluster,
  gitea: GiteaApi,
  { controller: namespace, giteaUrl, natsUser }: Installation,
): Promise<void> {
  const out = await Deno.makeTempDir({ dir: peers.folder });
  const tool = ["run", "-A", "tools/register.ts", "--url", giteaUrl];
  await run(Deno.execPath(), [...tool, "--name", namespace, "--out", `${out}/env`], {
    cwd: root,
    env: { REGISTRATION_TOKEN: await gitea.registrationToken() },
  });
  await peers.kube.kubectl([
    "create",
    "secret",
    "generic",
    "controller",
    "-n",
    namespace,
    `--from-file=${out}/GITEA_RUNNER_UUID`,
    `--from-file=${out}/GITEA_RUNNER_TOKEN`,
    `--from-literal=CAPABILITY_KEY=${crypto.randomUUID()}${crypto.randomUUID()}`,
    `--from-literal=NATS_USER=${natsUser}`,
    `--from-literal=NATS_PASSWORD=${NATS_PASSWORD}`,
  ]);
}

/** Of both accounts. */
export const NATS_PASSWORD = "password-of-nats-1";
/** Lines of nats-server's configuration: an account for each of two installations. */
export const NATS_AUTHORIZATION = `accounts {
  A { jetstream: enabled, users: [{ user: controller, password: "${NATS_PASSWORD}" }] }
  B { jetstream: enabled, users: [{ user: controller-b, password: "${NATS_PASSWORD}" }] }
}`;

/** What the controller's image runs. */
async function controllerEntrypoint(): Promise<readonly string[]> {
  const text = await Deno.readTextFile(`${root}deploy/Dockerfile`);
  return imageConfig(parseDockerfile(text)).entrypoint;
}

/** Makes {@link Replicas} of an installation's Deployment. */
export function createReplicas(
  { client, kubelet }: Cluster,
  { controller: namespace }: Installation,
): Replicas {
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
    async add({ env = {}, configMap, preload = [] } = {}) {
      const deployment = await client.call(
        "GET",
        `/apis/apps/v1/namespaces/${namespace}/deployments/controller`,
      );
      const template = at(deployment, "spec", "template");
      if (!isObject(template)) throw new Error("The Deployment has no template");
      const spec = structuredClone(template.spec) as {
        containers: { env: unknown[]; volumeMounts: unknown[]; command?: string[] }[];
        volumes: unknown[];
      };
      for (const [name, value] of Object.entries(env)) {
        spec.containers[0]?.env.push({ name, value });
      }
      const [container] = spec.containers;
      if (preload.length > 0 && container !== undefined) {
        const options = preload.map((file) => `--preload=${file}`);
        container.command = (await controllerEntrypoint()).toSpliced(-1, 0, ...options);
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
