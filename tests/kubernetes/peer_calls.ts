import { restoreAuthority } from "../../clients/x509/trust_domain.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import type { KubeObject } from "../support/kube_client.ts";
import { at, listAt } from "../support/kube_manifests.ts";
import { createMtlsFetch, type MtlsOptions } from "../support/mtls_fetch.ts";
import { run } from "../support/process.ts";
import type { Cluster } from "./cluster.ts";
import type { NodePod } from "./node_pod.ts";

const USER = 2000;

/** What stands in an executor's launch environment. */
export interface LaunchSecrets {
  readonly assignment: string;
  readonly capability: string;
}

/** Reads the launch environment out of a Pod, as only an administrator can. */
export function launchOf(pod: KubeObject): LaunchSecrets {
  const value = (name: string) =>
    String(
      at(
        listAt(pod, "spec", "containers", 0, "env").find((one) => at(one, "name") === name),
        "value",
      ),
    );
  return { assignment: value("CI_ASSIGNMENT_ID"), capability: value("CI_RUNNER_CAPABILITY") };
}

/** What the SPIRE CLI says as the executors' user: outside of any Pod, or in the cgroup of one. */
export async function fetchSvid(
  { peers }: Cluster,
  place: { readonly pod?: NodePod; readonly folder?: string } = {},
): Promise<string> {
  const { pod, folder } = place;
  const fetching = [
    "setpriv",
    `--reuid=${USER}`,
    `--regid=${USER}`,
    "--clear-groups",
    `${peers.bin}/spire-agent`,
    "api",
    "fetch",
    "x509",
    "-socketPath",
    peers.spire.agentSocket,
    "-timeout",
    "5s",
    ...folder === undefined ? [] : ["-write", folder],
  ];
  const inPod = pod === undefined
    ? []
    : ["bash", `${peers.scripts}/inpod.sh`, pod.uid, pod.containerId];
  const [command = "", ...args] = [...inPod, ...fetching];
  return await run(command, args).then(({ stdout }) => stdout, (error) => String(error));
}

/** The SVID of an executor, as one of its own steps could have it. */
export async function svidOf(cluster: Cluster, pod: NodePod): Promise<MtlsOptions> {
  const folder = await Deno.makeTempDir({ dir: cluster.peers.folder });
  await Deno.chown(folder, USER, USER);
  const said = await fetchSvid(cluster, { pod, folder });
  const read = (name: string) =>
    Deno.readTextFile(`${folder}/${name}`).catch((cause) => {
      throw new Error(`Fetch the SVID of "${pod.name}": ${said}`, { cause });
    });
  const [ca, cert, key] = await Promise.all(["bundle.0.pem", "svid.0.pem", "svid.0.key"].map(read));
  return { ca: ca ?? "", cert, key };
}

/** A certificate with these URI names, signed by the CA of SPIRE itself. */
export async function signedBySpire(
  { peers: { folder, spire } }: Cluster,
  uris: readonly string[],
): Promise<{ readonly cert: string; readonly key: string }> {
  const stored = objectOrEmpty(
    JSON.parse(await Deno.readTextFile(`${folder}/spire/server/keys.json`)),
  );
  const keys = Object.entries(objectOrEmpty(stored.keys));
  const ca = String(keys.find(([name]) => name.startsWith("x509-CA"))?.[1]);
  const pem = `-----BEGIN PRIVATE KEY-----\n${ca}\n-----END PRIVATE KEY-----\n`;
  const bundle = await Deno.readTextFile(`${folder}/spire/bundle.pem`);
  const authority = await restoreAuthority(pem + bundle, spire.trustDomain);
  return pemOf(await authority.issue({ uris, now: Date.now(), ttlMs: 3_600_000 }));
}

/** PEM of an issued certificate and its key. */
export function pemOf(
  issued: { readonly certificateDer: Uint8Array; readonly keyDer: Uint8Array },
): { readonly cert: string; readonly key: string } {
  const block = (label: string, der: Uint8Array) =>
    `-----BEGIN ${label}-----\n${
      der.toBase64().replace(/.{64}/g, "$&\n")
    }\n-----END ${label}-----\n`;
  return {
    cert: block("CERTIFICATE", issued.certificateDer),
    key: block("PRIVATE KEY", issued.keyDer),
  };
}

/** Asks a facade for a task; resolves to the HTTP status and body, or to how the connection failed. */
export async function askForTask(
  url: string,
  tls: MtlsOptions,
  launch: LaunchSecrets,
): Promise<string> {
  using client = createMtlsFetch(tls);
  try {
    const response = await client.fetch(
      `${url}/api/actions/runner.v1.RunnerService/FetchTask`,
      {
        method: "POST",
        headers: {
          "content-type": "application/proto",
          "x-runner-uuid": launch.assignment,
          "x-runner-token": launch.capability,
          "x-gate-instance": "0".repeat(32),
        },
        body: new Uint8Array(),
        signal: AbortSignal.timeout(10_000),
      },
    );
    return `${response.status} ${await response.text()}`;
  } catch (error) {
    const cause = error instanceof Error ? error.cause ?? error : error;
    return `no connection: ${cause instanceof Error ? cause.message : cause}`;
  }
}
