/**
 * The identity gate: the program inside the executor image. Reads the launch environment, runs one
 * job through the official runner, and exits with a code of `exit_codes.ts`. Logs JSON lines on
 * stderr. Run it directly (`exec`), not below a shell: a shell would keep the capability readable.
 */
import { watchSvids } from "../clients/spiffe/workload_api.ts";
import { systemClock } from "../lib/clock.ts";
import type { Logger } from "../lib/logger.ts";
import { EXIT, type Outcome } from "./exit_codes.ts";
import { runGate } from "./gate.ts";
import { createJsonLogger } from "./json_logger.ts";
import { type Launch, parseLaunch } from "./launch.ts";

async function main(): Promise<number> {
  const env = Deno.env.toObject();
  const logger = createJsonLogger(
    (line) => void Deno.stderr.writeSync(new TextEncoder().encode(line)),
    { now: Date.now, fields: { component: "gate" } },
  );
  const parsed = parseLaunch(env);
  if (parsed.kind === "faults") {
    for (const fault of parsed.faults) logger.error("launch environment is wrong", { fault });
    return EXIT.launch;
  }
  // Of no use to anything that this process loads or starts from here on.
  Deno.env.delete("CI_RUNNER_CAPABILITY");
  const { launch } = parsed;
  const outcome = await runOnce(launch, {
    env,
    logger: logger.child({ assignment: launch.assignment }),
  });
  const log = outcome.code === EXIT.delivered ? logger.info : logger.error;
  log("gate ends", { code: outcome.code, detail: outcome.detail, assignment: launch.assignment });
  return outcome.code;
}

async function runOnce(
  launch: Launch,
  { env, logger }: { env: Record<string, string>; logger: Logger },
): Promise<Outcome> {
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(`the executor got ${signal}`));
  }
  const work = await Deno.makeTempDir({ dir: Deno.cwd(), prefix: ".gate-" });
  try {
    await using svids = watchSvids({
      endpoint: launch.endpoint,
      spiffeId: launch.spiffeId,
      logger,
      clock: systemClock,
    }, { signal: new AbortController().signal });
    return await runGate(launch, {
      svids,
      env,
      logger,
      work,
      clock: systemClock,
      random: Math.random,
      stop: stop.signal,
    });
  } finally {
    await Deno.remove(work, { recursive: true }).catch((error) => {
      logger.warn("work folder was not removed", { error });
    });
  }
}

if (import.meta.main) Deno.exit(await main());
