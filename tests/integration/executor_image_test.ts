import assert from "node:assert/strict";
import { installExecutor } from "../../embedded/executor_image.ts";
import { openWorkloadSocket } from "../../embedded/workload_socket.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { eventually } from "../support/eventually.ts";
import {
  CAPABILITY,
  EXECUTOR_ID,
  FACADE_ID,
  openRecordingFacade,
  taskOf,
  testAuthority,
} from "./executor_harness.ts";

/** Another user, where this one may take it on. */
const OTHER = Deno.uid() === 0 ? 20_017 : null;

Deno.test("installExecutor() makes an executor that runs a job as another user, from nothing", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.chmod(folder, 0o755);
  const authority = await testAuthority();
  await using facade = await openRecordingFacade(authority);
  const socket = `${folder}/workload.sock`;
  await using workload = await openWorkloadSocket({ authority, clock: systemClock }, {
    path: socket,
    userId: OTHER,
    ttlMs: 3_600_000,
  });
  workload.bind(EXECUTOR_ID);
  const image = await installExecutor({
    directory: `${folder}/image`,
    root: OTHER !== null,
    runnerBin: null,
    logger: silentLogger,
    signal: new AbortController().signal,
  });
  assert.equal(image.runner, "sample");
  // Looks through the environment of every process that a step may read.
  const script = `echo "user $(id -u)"; env
    cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep CI_RUNNER_CAP || echo "hidden"`;
  const workflow = JSON.stringify({
    name: "x",
    on: "push",
    jobs: { build: { "runs-on": "self-hosted", steps: [{ run: script }] } },
  });
  facade.task = taskOf(7n, workflow, { giteaUrl: "http://127.1:65530" });
  const home = `${folder}/home`;
  await Deno.mkdir(home);
  if (OTHER !== null) await Deno.chown(home, OTHER, OTHER);
  const [program = "", ...args] = image.command;
  const gate = new Deno.Command(program, {
    args,
    cwd: home,
    clearEnv: true,
    env: {
      ...image.environment,
      CI_ASSIGNMENT_ID: "gitea-task-7",
      CI_RUNNER_CAPABILITY: CAPABILITY,
      CI_SPIFFE_ID: EXECUTOR_ID,
      RUNNER_FACADE_URL: facade.url,
      RUNNER_FACADE_SPIFFE_ID: FACADE_ID,
      GITEA_URL: "http://127.1:65530",
      SPIFFE_ENDPOINT_SOCKET: `unix://${socket}`,
    },
    stdout: "piped",
    stderr: "piped",
    ...(OTHER === null ? {} : { uid: OTHER, gid: OTHER }),
  });
  const { code, stderr } = await gate.output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  assert.equal(facade.final?.result, Result.SUCCESS);
  assert.equal(facade.rows.includes(`user ${OTHER ?? Deno.uid()}`), true);
  // Without a user of its own the job is the controller's own user and can read everything.
  if (OTHER !== null) assert.equal(facade.rows.includes("hidden"), true, facade.rows.join("\n"));
  assert.equal(facade.rows.some((row) => /^(DENO_|CI_RUNNER_)/.test(row)), false);
  // The gate has cleaned up after itself.
  assert.deepEqual([...Deno.readDirSync(home)].filter((entry) => /gate/.test(entry.name)), []);
  if (OTHER !== null) assert.equal((Deno.statSync(program).mode ?? 0) & 0o777, 0o711);
  await Deno.remove(folder, { recursive: true });
});

/** Processes that were started with `words` in their command line. */
async function started(words: string): Promise<number[]> {
  const found: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^[0-9]+$/.test(name)) continue;
    const command = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (command.includes(words)) found.push(Number(name));
  }
  return found;
}

Deno.test("installExecutor() ends with its signal, and nothing of it runs, though its program hangs", async () => {
  const folder = await Deno.makeTempDir();
  const stop = new AbortController();
  const installing = installExecutor({
    directory: folder,
    root: false,
    runnerBin: "/bin/true",
    logger: silentLogger,
    signal: stop.signal,
  });
  const ended = assert.rejects(installing, /^Error: stopped$/);
  const [pid] = await eventually(async () => {
    const found = await started(`${folder}/gate-`);
    return found.length > 0 && found;
  }, { what: "the gate to be warmed up", everyMs: 5 });
  assert.ok(pid !== undefined);
  Deno.kill(pid, "SIGSTOP");
  stop.abort(new Error("stopped"));
  await ended;
  assert.deepEqual(await started(folder), []);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("installExecutor() refuses a folder that other users cannot enter", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.chmod(folder, 0o700);
  await assert.rejects(
    installExecutor({
      directory: `${folder}/image`,
      root: true,
      logger: silentLogger,
      signal: new AbortController().signal,
    }),
    /other users cannot enter/,
  );
  await Deno.remove(folder, { recursive: true });
});
