import type { Backend } from "../controller/backend.ts";
import type { Engine } from "../controller/engine.ts";
import { judgeVersion } from "../controller/health/known_versions.ts";
import type { HealthView } from "../controller/views/operating_views.ts";
import { checkBackend } from "../controller/health/backend_check.ts";
import { createSelfTests, type SelfTest } from "../controller/health/self_tests.ts";
import { readAtMost } from "../lib/bytes.ts";
import { isObject } from "../lib/json_object.ts";
import type { Clock } from "../lib/clock.ts";
import type { Connections } from "./connections.ts";

/** The page Health, and running its tests again. */
export interface HealthChecks {
  health(): HealthView;
  recheck(signal: AbortSignal): Promise<void>;
}

/**
 * Self tests against the servers as this process reaches them, and their versions. None has an effect
 * on any job. `acting` is what only a leader has.
 */
export function createHealthChecks(deps: {
  readonly connections: Pick<Connections, "nats" | "control" | "events" | "svids">;
  readonly giteaUrl: string;
  readonly version: string;
  readonly clock: Clock;
  readonly acting?: {
    readonly engine: Pick<Engine, "strangers">;
    readonly backends: readonly Pick<Backend, "name" | "list" | "others">[];
  };
}): HealthChecks {
  const { connections, giteaUrl, clock, acting } = deps;
  let giteaVersion: string | null = null;
  const tests = createSelfTests([
    {
      name: "gitea",
      async run(signal) {
        giteaVersion = await readGiteaVersion(giteaUrl, signal) ?? giteaVersion;
        return await pingGitea(giteaUrl, signal);
      },
    },
    {
      name: "nats",
      async run(signal) {
        const epoch = await connections.control.epoch({ signal });
        return `the bucket answers: epoch ${epoch}`;
      },
    },
    {
      name: "events",
      async run(signal) {
        const [newest] = await connections.events.read(
          { limit: 1, newestFirst: true },
          { signal },
        );
        if (newest === undefined) return "the stream answers and is empty";
        return `newest event ${newest.seq}, of ${new Date(newest.at).toISOString()}`;
      },
    },
    { name: "identity", run: () => Promise.try(() => checkIdentity(connections.svids, clock)) },
    ...(acting?.backends ?? []).map((backend): SelfTest => ({
      name: backend.name,
      run: (signal) => checkBackend(backend, acting?.engine.strangers(backend.name) ?? [], signal),
    })),
  ], { clock });
  return {
    health: () => ({
      selfTests: tests.list(),
      versions: [
        {
          name: "gitea-dynamic-runner",
          version: deps.version,
          verdict: "good",
          detail: null,
        },
        judgeVersion("deno", Deno.version.deno),
        judgeVersion("nats-server", connections.nats.facts()?.version ?? null),
        judgeVersion("gitea", giteaVersion),
      ],
    }),
    recheck: tests.run,
  };
}

async function pingGitea(url: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(`${url}/api/actions/ping.v1.PingService/Ping`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ data: "self test" }),
    redirect: "error",
    signal,
  });
  await answer.body?.cancel();
  if (!answer.ok) throw new Error(`Ping Gitea: it answered with status ${answer.status}`);
  return "answered a ping";
}

const MAX_VERSION_BYTES = 64 * 1024;

/** Null where Gitea does not tell it without signing in. */
async function readGiteaVersion(url: string, signal: AbortSignal): Promise<string | null> {
  try {
    const answer = await fetch(`${url}/api/v1/version`, { redirect: "error", signal });
    const bytes = answer.ok
      ? await readAtMost(answer.body ?? [], MAX_VERSION_BYTES)
      : await answer.body?.cancel();
    const body: unknown = bytes && JSON.parse(new TextDecoder().decode(bytes));
    return isObject(body) && typeof body.version === "string" ? body.version.slice(0, 60) : null;
  } catch {
    return null; // The ping says what is the matter.
  }
}

function checkIdentity(svids: Connections["svids"], clock: Clock): string {
  const svid = svids.current();
  if (svid === null) throw new Error("Look at the Workload API: it has given no SVID yet");
  const left = Math.round((svid.expiresAt - clock.now()) / 1_000);
  if (left <= 0) throw new Error("Look at the Workload API: the SVID has expired");
  return `${svid.spiffeId}, valid for ${left} s`;
}
