/**
 * The identity gate with the official runner beside a facade of the test; needs no Gitea. Run it by
 * itself: `deno run -A tests/e2e/executor_official.ts [TEXT IN THE NAME]`, with `gitea-runner` on PATH.
 */
import assert from "node:assert/strict";
import { findRunner, installExecutor } from "../../embedded/executor_image.ts";
import { openWorkloadSocket } from "../../embedded/workload_socket.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import {
  CAPABILITY,
  EXECUTOR_ID,
  FACADE_ID,
  openRecordingFacade,
  type RecordingFacade,
  taskOf,
  testAuthority,
} from "../integration/executor_harness.ts";
import { eventually } from "../support/eventually.ts";

const PATH = Deno.env.get("PATH") ?? "";

interface World {
  readonly facade: RecordingFacade;
  /** Starts the gate; resolves to its exit code. */
  start(scripts: readonly string[], options?: StartOptions): { readonly exit: Promise<number> } & {
    terminate(): void;
  };
}

interface StartOptions {
  readonly giteaUrl?: string;
  readonly graceSeconds?: number;
}

async function withWorld(use: (world: World) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  await using authority = {
    value: await testAuthority(),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
  await using facade = await openRecordingFacade(authority.value);
  await using workload = await openWorkloadSocket(
    { authority: authority.value, clock: systemClock },
    { path: `${folder}/workload.sock`, userId: null, ttlMs: 3_600_000 },
  );
  workload.bind(EXECUTOR_ID);
  const image = await installExecutor({
    directory: `${folder}/image`,
    root: false,
    path: PATH,
    logger: silentLogger,
    signal: new AbortController().signal,
  });
  assert.equal(image.runner, "official");
  await Deno.mkdir(`${folder}/home`);
  const started: Deno.ChildProcess[] = [];
  await using _ended = {
    async [Symbol.asyncDispose]() {
      for (const child of started) {
        try {
          child.kill("SIGKILL");
        } catch {
          // It has ended, as it should.
        }
        await child.status;
      }
    },
  };
  await use({
    facade,
    start(scripts, { giteaUrl = "http://127.1:65530", graceSeconds = 60 } = {}) {
      const steps = scripts.map((run) => ({ run }));
      const jobs = { build: { "runs-on": "self-hosted", steps } };
      const workflow = JSON.stringify({ name: "x", on: "push", jobs });
      facade.task = taskOf(7n, workflow, { giteaUrl });
      const [program = "", ...args] = image.command;
      const child = new Deno.Command(program, {
        args,
        cwd: `${folder}/home`,
        clearEnv: true,
        env: {
          ...image.environment,
          HOME: `${folder}/home`,
          CI_ASSIGNMENT_ID: "gitea-task-7",
          CI_RUNNER_CAPABILITY: CAPABILITY,
          CI_SPIFFE_ID: EXECUTOR_ID,
          RUNNER_FACADE_URL: facade.url,
          RUNNER_FACADE_SPIFFE_ID: FACADE_ID,
          GITEA_URL: giteaUrl,
          CI_GRACE_SECONDS: String(graceSeconds),
          SPIFFE_ENDPOINT_SOCKET: `unix://${folder}/workload.sock`,
        },
        stdin: "null",
        stdout: "null",
        stderr: Deno.env.get("VERBOSE") === "yes" ? "inherit" : "null",
      }).spawn();
      started.push(child);
      return {
        exit: child.status.then((status) => status.code),
        terminate: () => child.kill("SIGTERM"),
      };
    },
  });
}

const has = (facade: RecordingFacade, row: string) => () => facade.rows.includes(row);

const cases: Readonly<Record<string, (world: World) => Promise<void>>> = {
  "a job's steps see Gitea's own URL, the identity, and no proxy": async ({ facade, start }) => {
    assert.equal(await start(["env", "echo two"]).exit, 0);
    assert.equal(facade.final?.result, Result.SUCCESS);
    for (
      const row of [
        "GITHUB_SERVER_URL=http://127.1:65530",
        "GITHUB_API_URL=http://127.1:65530/api/v1",
        "HTTP_PROXY=",
        `CI_SPIFFE_ID=${EXECUTOR_ID}`,
        "two",
      ]
    ) assert.equal(facade.rows.includes(row), true, row);
    assert.equal(facade.rows.some((row) => row.includes(CAPABILITY)), false);
    assert.equal(facade.sealed, true);
  },
  "an https Gitea is played by the gate": async ({ facade, start }) => {
    const giteaUrl = "https://gitea.test:8443/git";
    assert.equal(await start(["env"], { giteaUrl }).exit, 0);
    assert.equal(facade.final?.result, Result.SUCCESS);
    assert.equal(facade.rows.includes(`GITHUB_SERVER_URL=${giteaUrl}`), true);
    assert.equal(facade.rows.includes("HTTPS_PROXY="), true);
  },
  "a job that ends while the facade is away is delivered whole": async ({ facade, start }) => {
    const gate = start(["echo before; sleep 6; seq 1 200; echo end"]);
    await eventually(has(facade, "before"), { what: "the first row", timeoutMs: 20_000 });
    facade.weather = "unavailable";
    await systemClock.sleep(12_000);
    assert.equal(facade.rows.includes("end"), false);
    facade.weather = "fair";
    assert.equal(await gate.exit, 0);
    assert.equal(facade.final?.result, Result.SUCCESS);
    const numbers = facade.rows.filter((row) => /^\d+$/.test(row));
    assert.deepEqual(numbers, Array.from({ length: 200 }, (_, i) => String(i + 1)));
  },
  "a stopped executor's success is reported as failure": async ({ facade, start }) => {
    const gate = start(["echo started; sleep 60", "echo never"], { graceSeconds: 10 });
    await eventually(has(facade, "started"), { what: "the first row", timeoutMs: 20_000 });
    gate.terminate();
    assert.equal(await gate.exit, 0);
    assert.deepEqual(facade.terminating, ["the executor got SIGTERM"]);
    assert.equal(facade.final?.result, Result.FAILURE);
    assert.equal(facade.rows.includes("context canceled"), true);
    assert.match(facade.rows.at(-1) ?? "", /interrupted.*SIGTERM/);
  },
  "a cancel reaches the job": async ({ facade, start }) => {
    const gate = start(["echo started; sleep 120", "echo never"]);
    await eventually(has(facade, "started"), { what: "the first row", timeoutMs: 20_000 });
    facade.answer = Result.CANCELLED;
    const asked = performance.now();
    assert.equal(await gate.exit, 0);
    assert.ok(performance.now() - asked < 20_000);
    assert.equal(facade.final?.result, Result.CANCELLED);
    assert.equal(facade.rows.includes("never"), false);
  },
  "5,000 lines arrive in order": async ({ facade, start }) => {
    assert.equal(await start(["seq 1 5000"]).exit, 0);
    const numbers = facade.rows.filter((row) => /^\d+$/.test(row));
    assert.deepEqual(numbers, Array.from({ length: 5000 }, (_, i) => String(i + 1)));
  },
};

/** Runs all cases with `only` in their name; throws at the first that fails. */
export async function runOfficialExecutorCases(
  say: (line: string) => void,
  only = "",
): Promise<void> {
  if (await findRunner(PATH) === null) {
    throw new Error("Run the official runner's cases: no gitea-runner on PATH");
  }
  for (const [name, run] of Object.entries(cases)) {
    if (!name.includes(only)) continue;
    const started = performance.now();
    await withWorld(run);
    say(`ok ${name} (${Math.round(performance.now() - started)} ms)`);
  }
}

if (import.meta.main) {
  const encoder = new TextEncoder();
  await runOfficialExecutorCases(
    (line) => void Deno.stdout.writeSync(encoder.encode(`${line}\n`)),
    Deno.args[0],
  );
}
