import assert from "node:assert/strict";
import { dirname } from "node:path";
import { eventually } from "../support/eventually.ts";
import type { Peers } from "../support/peers.ts";
import { run, startProcess } from "../support/process.ts";

/**
 * Between rounds of SPIRE's server and agents. With half a second each an identity comes after up to one,
 * and where the two rounds stand to each other moves so slowly that the start times of minutes differ by a
 * tenth of a second.
 */
export const AGENT_ROUND = "50ms";

/** A SPIRE agent that sees no Pods, in place of those that guests have of their own (ADR 0031). */
export interface GuestAgent extends AsyncDisposable {
  /** Folder with its Workload API's socket, `spire-agent.sock`. */
  readonly folder: string;
  /** Parent of guests' entries. */
  readonly spiffeId: string;
}

const READY_MS = 30_000;

/**
 * Starts one more agent at the run's SPIRE server. The first one asks the kubelet about every process in a
 * Pod's cgroup, and a guest is in none of its Pods. Rejects when it is not ready within half a minute.
 */
export async function startGuestAgent(peers: Peers, signal: AbortSignal): Promise<GuestAgent> {
  const { spire } = peers;
  const first = dirname(spire.serverSocket);
  const [, port] = /server_port = "(\d+)"/.exec(await Deno.readTextFile(`${first}/agent.conf`)) ??
    assert.fail("the first agent's configuration names no port of the server");
  const home = `${peers.folder}/guest-agent`;
  const folder = `${home}/workload-api`;
  const socket = `${folder}/spire-agent.sock`;
  const spiffeId = `spiffe://${spire.trustDomain}/guest`;
  await Deno.mkdir(folder, { recursive: true });
  for (const each of [home, folder]) await Deno.chmod(each, 0o755);
  await Deno.mkdir(`${home}/data`, { mode: 0o700 });
  await Deno.writeTextFile(
    `${home}/agent.conf`,
    `agent {
  server_address = "127.0.0.1"
  server_port = "${port}"
  trust_domain = "${spire.trustDomain}"
  trust_bundle_path = "${home}/bundle.pem"
  socket_path = "${socket}"
  data_dir = "${home}/data"
  experimental { sync_interval = "${AGENT_ROUND}" }
}
plugins {
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "memory" { plugin_data {} }
  WorkloadAttestor "unix" { plugin_data {} }
}
`,
  );
  await Deno.writeTextFile(`${home}/bundle.pem`, await spire.server(["bundle", "show"]));
  const said = await spire.server([
    "token",
    "generate",
    "-spiffeID",
    spiffeId,
    "-ttl",
    "600",
  ]);
  const token = /Token:\s*(\S+)/.exec(said)?.[1] ?? assert.fail(`no token: ${said}`);
  const agent = await startProcess(`${peers.bin}/spire-agent`, [
    "run",
    "-config",
    `${home}/agent.conf`,
    "-joinToken",
    token,
  ], { logFile: `${peers.folder}/logs/guest-agent.log`, signal });
  await eventually(async () => {
    await run(`${peers.bin}/spire-agent`, ["healthcheck", "-socketPath", socket], { signal });
    return true;
  }, { what: "the guests' agent", timeoutMs: READY_MS, everyMs: 250 }).catch(async (cause) => {
    await agent.stop(2_000);
    throw new Error(`Start the guests' agent\n${await agent.tail(5)}`, { cause });
  });
  return { folder, spiffeId, [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose]() };
}
