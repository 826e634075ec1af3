/**
 * A small runner for machines without the official one: speaks the same protocol with the same
 * command line (`daemon --once --config FILE`), but runs `run:` steps only.
 */
import { parseArgs } from "node:util";
import { parseYaml } from "../../controller/model/workflow.ts";
import { systemClock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error_text.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { Result, type Task } from "../../proto/gen/runner/v1/messages_pb.ts";
import { readJob } from "./job.ts";
import { createMasks } from "./masks.ts";
import { createReporter } from "./reporter.ts";
import { createRpc, type Registration, type Rpc } from "./rpc.ts";
import { runJob } from "./run_job.ts";

const VERSION = "sample-runner/0.1.0";
const POLL_MS = 100;
const FETCH_MS = 10_000;

interface Config {
  readonly registrationFile: string;
  readonly overrides: Readonly<Record<string, string>>;
  readonly shutdownMs: number;
  readonly workFolder: string;
}

function readConfig(text: string): Config {
  const config = objectOrEmpty(parseYaml(text));
  const runner = objectOrEmpty(config["runner"]);
  const seconds = /^(\d+)s$/.exec(String(runner["shutdown_timeout"]))?.[1];
  return {
    registrationFile: String(runner["file"] ?? ".runner"),
    overrides: Object.fromEntries(
      Object.entries(objectOrEmpty(runner["envs"])).map(([name, value]) => [name, String(value)]),
    ),
    shutdownMs: Number(seconds ?? "0") * 1000,
    workFolder: String(objectOrEmpty(config["host"])["workdir_parent"] ?? "act"),
  };
}

/** One task, then the end; 1 when the server does not take us. */
async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { once: { type: "boolean" }, config: { type: "string" } },
  });
  if (positionals[0] !== "daemon" || values.once !== true || values.config === undefined) {
    say("Usage: sample_runner daemon --once --config FILE");
    return 2;
  }
  const config = readConfig(await Deno.readTextFile(values.config));
  const file: Registration = JSON.parse(await readRegistration(config.registrationFile));
  const rpc = createRpc(file, await httpClient());
  const stop = new AbortController();
  const leave = new AbortController();
  Deno.addSignalListener("SIGTERM", () => {
    leave.abort();
    systemClock.sleep(config.shutdownMs).then(() => {
      stop.abort("the runner was stopped before the job had ended");
    });
  });
  const labels = file.labels.map((label) => label.replace(/:.*$/, ""));
  await rpc.declare({ version: VERSION, labels }, { signal: leave.signal });
  const task = await fetchTask(rpc, leave.signal);
  if (task !== undefined) await runTask(task, { rpc, config, file, stop: stop.signal });
  return 0;
}

/** Deno opens `/dev/stdin` by name only for programs that may do anything. */
async function readRegistration(path: string): Promise<string> {
  if (path !== "/dev/stdin") return await Deno.readTextFile(path);
  return await new Response(Deno.stdin.readable).text();
}

async function fetchTask(rpc: Rpc, leave: AbortSignal): Promise<Task | undefined> {
  while (!leave.aborted) {
    try {
      using limit = systemClock.timeout(FETCH_MS);
      const { task } = await rpc.fetchTask({ signal: AbortSignal.any([leave, limit.signal]) });
      if (task !== undefined) return task;
    } catch (error) {
      if (!leave.aborted) say(`No task: ${messageOf(error)}`);
    }
    await systemClock.sleep(POLL_MS, leave).catch(() => {});
  }
  return undefined;
}

async function runTask(
  task: Task,
  options: {
    readonly rpc: Rpc;
    readonly config: Config;
    readonly file: Registration;
    readonly stop: AbortSignal;
  },
): Promise<void> {
  const { config, file } = options;
  const key = String(task.context?.["job"] ?? "");
  const masks = createMasks(Object.values(task.secrets));
  const parts = { rpc: options.rpc, clock: systemClock, masks, taskId: task.id };
  let result = Result.FAILURE;
  let reporter = createReporter({ ...parts, steps: 0 });
  const ended = new AbortController();
  let reporting: Promise<void> = Promise.resolve();
  try {
    const job = readJob(task.workflowPayload ?? new Uint8Array(), key);
    reporter = createReporter({ ...parts, steps: job.steps.length });
    reporting = reporter.run(ended.signal);
    await reporter.log(`${file.uuid} (${VERSION}) received task ${task.id} of job ${key}`);
    result = await runJob({
      ...options,
      ...parts,
      task,
      job,
      reporter,
      env: stepEnvironment(),
      overrides: config.overrides,
      address: file.address,
      folder: `${config.workFolder}/${task.id}`,
    });
  } catch (error) {
    await reporter.log(`Error: ${messageOf(error)}`);
  }
  ended.abort();
  await reporting;
  await reporter.close(result);
}

/** Without what is meant for this program alone. */
function stepEnvironment(): Record<string, string> {
  const { DENO_DIR: _, ...rest } = Deno.env.toObject();
  return rest;
}

/** `fetch` finds its proxy in the environment; the gate's certificate it must be told. */
async function httpClient(): Promise<Deno.HttpClient | undefined> {
  const caCerts: string[] = [];
  for (const folder of (Deno.env.get("SSL_CERT_DIR") ?? "/run/identity-gate").split(":")) {
    try {
      caCerts.push(await Deno.readTextFile(`${folder}/gate.pem`));
    } catch {
      // Not there, as for every http Gitea.
    }
  }
  return caCerts.length === 0 ? undefined : Deno.createHttpClient({ caCerts });
}

function say(text: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${text}\n`));
}

if (import.meta.main) Deno.exit(await main(Deno.args));
