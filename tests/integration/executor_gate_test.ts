import assert from "node:assert/strict";
import { fileURLToPath as fromFileUrl } from "node:url";
import { runGate } from "../../executor/gate.ts";
import type { GateLimits } from "../../executor/gate_limits.ts";
import { EXIT, type Outcome } from "../../executor/exit_codes.ts";
import type { Launch } from "../../executor/launch.ts";
import type { Svid } from "../../clients/spiffe/svid.ts";
import { GATE_PHASES } from "../../controller/model/gate_phase.ts";
import { parseAssignmentId } from "../../controller/model/ids.ts";
import { untilAborted } from "../../lib/abortable.ts";
import { Result } from "../../proto/gen/runner/v1/messages_pb.ts";
import { systemClock } from "../../lib/clock.ts";
import type { Fields, Logger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { eventually } from "../support/eventually.ts";
import {
  CAPABILITY,
  EXECUTOR_ID,
  FACADE_ID,
  openRecordingFacade,
  type RecordingFacade,
  taskOf,
  testAuthority,
} from "./executor_harness.ts";
import { issueSvid } from "../support/svids.ts";

const GITEA = "http://127.1:65530";
const SAMPLE_RUNNER = fromFileUrl(new URL("../../embedded/sample_runner/main.ts", import.meta.url));
const CONFIG = fromFileUrl(new URL("../../deno.json", import.meta.url));

/** The runner is prepared beside the others, which follow each other. */
const REACHED_IN_ORDER = GATE_PHASES.filter((phase) => phase !== "prepared");

interface Options {
  readonly runner?: readonly string[];
  readonly limits?: Partial<GateLimits>;
  readonly facadeId?: string;
  readonly svid?: "none";
  readonly graceMs?: number;
  readonly capability?: string;
  readonly workflow?: string;
}

/** A gate beside a facade; the job's steps are shell lines. */
async function setup(options: Options = {}) {
  const authority = await testAuthority();
  const facade = await openRecordingFacade(authority);
  const work = await Deno.makeTempDir();
  let svid: Svid | null = options.svid === "none"
    ? null
    : await issueSvid(authority, [EXECUTOR_ID]);
  const assignment = parseAssignmentId("gitea-task-7");
  if (assignment === undefined) throw new Error("bad id");
  const launch: Launch = {
    assignment,
    capability: new Secret(options.capability ?? CAPABILITY),
    spiffeId: EXECUTOR_ID,
    facadeUrl: facade.url,
    facadeSpiffeId: options.facadeId ?? FACADE_ID,
    giteaUrl: GITEA,
    endpoint: "unix:///unused",
    runner: options.runner ??
      [Deno.execPath(), "run", "-A", "--config", CONFIG, "--no-check", SAMPLE_RUNNER],
    graceMs: options.graceMs ?? 30_000,
    trace: undefined,
  };
  const stop = new AbortController();
  const records: { message: string; fields: Fields }[] = [];
  const record = (message: string, fields: Fields = {}) => void records.push({ message, fields });
  const logger: Logger = {
    debug: record,
    info: record,
    warn: record,
    error: record,
    child: () => logger,
  };
  facade.task = taskOf(7n, options.workflow ?? job("echo hello"), { giteaUrl: GITEA });
  let running: Promise<Outcome> | undefined;
  const start = () =>
    running ??= runGate(launch, {
      svids: {
        current: () => svid,
        ready: (signal) => svid !== null ? Promise.resolve(svid) : untilAborted(signal),
      },
      clock: systemClock,
      random: () => 0.5,
      logger,
      env: Deno.env.toObject(),
      work,
      stop: stop.signal,
      limits: {
        heartbeatMs: 300,
        refusalMs: 500,
        facadeMs: 2000,
        deliveryMs: 20_000,
        ...options.limits,
      },
    });
  return {
    facade,
    work,
    stop,
    records,
    run: start,
    async rotate() {
      svid = await issueSvid(authority, [EXECUTOR_ID]);
      return svid.serial;
    },
    async [Symbol.asyncDispose]() {
      stop.abort("the test is over");
      await running;
      await facade[Symbol.asyncDispose]();
      await Deno.remove(work, { recursive: true });
    },
  };
}

function job(...scripts: string[]): string {
  return JSON.stringify({
    name: "build",
    on: "push",
    jobs: { build: { "runs-on": "self-hosted", steps: scripts.map((run) => ({ run })) } },
  });
}

function printed(facade: RecordingFacade): string[] {
  return facade.rows.filter((row) => !/^(Run|Job|gitea-task)/.test(row));
}

/** What the facade was told at the end, of gates that have passed every phase. */
function exitsOf(facade: RecordingFacade) {
  return facade.exits.map(({ phases, ...exit }) => {
    assert.deepEqual(Object.keys(phases).sort(), [...GATE_PHASES].sort());
    const reached = REACHED_IN_ORDER.map((name) => phases[name] ?? assert.fail());
    assert.deepEqual(reached, reached.toSorted((a, b) => a - b));
    return exit;
  });
}

Deno.test("runGate() runs the one job and exits 0 with the final state delivered", async () => {
  await using it = await setup({ workflow: job("echo one; echo two", "echo three") });
  const outcome = await it.run();
  assert.deepEqual(outcome, { code: EXIT.delivered, detail: "delivered SUCCESS" });
  assert.deepEqual(printed(it.facade), ["one", "two", "three"]);
  assert.equal(it.facade.sealed, true);
  assert.deepEqual(it.facade.final?.steps.map((step) => step.result), [
    Result.SUCCESS,
    Result.SUCCESS,
  ]);
  assert.deepEqual(exitsOf(it.facade), [{ delivered: true, ...outcome }]);
  assert.equal(it.facade.heartbeats[0], false);
  assert.equal(it.facade.calls[0], "heartbeat");
  const reports = it.facade.calls.filter((call) => call !== "heartbeat");
  assert.deepEqual(reports.slice(0, 2), ["Declare", "FetchTask"]);
  const headers = it.facade.lastHeaders;
  assert.equal(headers["x-runner-uuid"], "gitea-task-7");
  assert.match(String(headers["x-gate-instance"]), /^[0-9a-f]{32}$/);
});

Deno.test("runGate() hides capability, nonce and proxy from the steps", async () => {
  await using it = await setup({ workflow: job("env | sort") });
  assert.equal((await it.run()).code, EXIT.delivered);
  const text = it.facade.rows.join("\n");
  assert.equal(text.includes(CAPABILITY), false);
  assert.match(text, /^HTTP_PROXY=$/m);
  assert.match(text, new RegExp(`^GITHUB_SERVER_URL=${GITEA}$`, "m"));
  assert.equal(/CI_ASSIGNMENT_ID|RUNNER_FACADE|CI_RUNNER_/.test(text), false);
});

Deno.test("runGate() delivers a job that ended while the facade was away, rows in order", async () => {
  await using it = await setup({
    workflow: job("echo before; sleep 1; for i in $(seq 1 300); do echo tick $i; done; echo end"),
  });
  const running = it.run();
  await eventually(() => it.facade.rows.includes("before"), { what: "the first row" });
  it.facade.weather = "unavailable";
  await eventually(() => it.records.some((record) => record.message === "runner ended"), {
    what: "the end of the runner",
    timeoutMs: 20_000,
  });
  assert.equal(it.facade.rows.includes("end"), false);
  it.facade.weather = "fair";
  assert.equal((await running).code, EXIT.delivered);
  const ticks = Array.from({ length: 300 }, (_, i) => `tick ${i + 1}`);
  assert.deepEqual(printed(it.facade), ["before", ...ticks, "end"]);
  assert.equal(it.facade.final?.result, Result.SUCCESS);
  assert.equal(it.facade.heartbeats.includes(true), true);
  // From the hand-over on each says where the log begins.
  assert.deepEqual([it.facade.offsets[0], it.facade.offsets.at(-1)], [undefined, 5]);
});

Deno.test("runGate() loses and doubles nothing when answers are lost", async () => {
  await using it = await setup({
    workflow: job("for i in 1 2 3 4 5; do echo $i; sleep 0.3; done"),
  });
  const running = it.run();
  await eventually(() => it.facade.rows.includes("1"), { what: "the first row" });
  // The same rows are sent again and again: none of their answers arrives.
  it.facade.weather = "rows_lost";
  const reports = (...names: string[]) =>
    it.facade.calls.filter((name) => names.includes(name)).length;
  const rows = reports("UpdateLog");
  await eventually(() => reports("UpdateLog") >= rows + 3, {
    what: "three calls with rows whose answers are lost",
    timeoutMs: 30_000,
  });
  it.facade.weather = "lost";
  const all = reports("UpdateLog", "UpdateTask");
  await eventually(() => reports("UpdateLog", "UpdateTask") >= all + 3, {
    what: "three reports whose answers are lost",
    timeoutMs: 30_000,
  });
  it.facade.weather = "fair";
  assert.equal((await running).code, EXIT.delivered);
  assert.deepEqual(printed(it.facade), ["1", "2", "3", "4", "5"]);
});

Deno.test("runGate() waits with the runner until the facade answers", async () => {
  await using it = await setup({ limits: { facadeMs: 30_000 } });
  it.facade.weather = "unavailable";
  const running = it.run();
  await eventually(() => it.facade.calls.length >= 3, { what: "three tries" });
  assert.deepEqual([...new Set(it.facade.calls)], ["heartbeat"]);
  assert.equal(it.records.some(({ fields }) => fields["phase"] === "runner"), false);
  it.facade.weather = "fair";
  assert.equal((await running).code, EXIT.delivered);
});

Deno.test("runGate() tells the job of a cancel and delivers CANCELLED", async () => {
  await using it = await setup({ workflow: job("echo started; sleep 60") });
  const running = it.run();
  await eventually(() => it.facade.rows.includes("started"), { what: "the first row" });
  it.facade.answer = Result.CANCELLED;
  assert.equal((await running).code, EXIT.delivered);
  assert.equal(it.facade.final?.result, Result.CANCELLED);
});

Deno.test("runGate() tells the facade before it stops the runner, and delivers a failure", async () => {
  await using it = await setup({ workflow: job("echo started; sleep 60"), graceMs: 4000 });
  const running = it.run();
  await eventually(() => it.facade.rows.includes("started"), { what: "the first row" });
  it.stop.abort("the node is shut down");
  assert.equal((await running).code, EXIT.delivered);
  assert.deepEqual(it.facade.terminating, ["the node is shut down"]);
  assert.equal(it.facade.final?.result, Result.FAILURE);
});

Deno.test("runGate() kills a runner that ignores SIGTERM before the grace period ends", async () => {
  await using it = await setup({
    runner: ["/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"],
    graceMs: 2000,
  });
  const running = it.run();
  await eventually(() => it.records.some(({ fields }) => fields["line"] === "up"), {
    what: "the runner",
  });
  const asked = performance.now();
  it.stop.abort("the executor got SIGTERM");
  const outcome = await running;
  assert.equal(outcome.code, EXIT.stopped);
  assert.ok(performance.now() - asked < 2000);
  assert.deepEqual(it.facade.terminating, ["the executor got SIGTERM"]);
});

Deno.test("runGate() says so when the runner went without a final state", async () => {
  // Speaks just enough to be handed the task, then ends.
  const script = `const c = JSON.parse(await new Response(Deno.stdin.readable).text());
    const call = (m, b) => fetch(c.address + "/api/actions/runner.v1.RunnerService/" + m, {
      method: "POST", body: b, headers: { "content-type": "application/proto",
      "x-runner-uuid": c.uuid, "x-runner-token": c.token } });
    await (await call("Declare", new Uint8Array())).arrayBuffer();
    await (await call("FetchTask", new Uint8Array())).arrayBuffer();
    Deno.exit(2);`;
  await using it = await setup({
    runner: ["/bin/sh", "-c", `exec "$0" run -A --no-config "$GATE_TEST_FILE"`, Deno.execPath()],
  });
  const file = `${it.work}/panics.mjs`;
  await Deno.writeTextFile(file, script);
  Deno.env.set("GATE_TEST_FILE", file);
  try {
    const outcome = await it.run();
    assert.equal(outcome.code, EXIT.noFinalState);
    assert.deepEqual(exitsOf(it.facade), [{ delivered: false, ...outcome }]);
    assert.match(outcome.detail, /code 2 \(a panic\)/);
    assert.equal(it.facade.sealed, false);
  } finally {
    Deno.env.delete("GATE_TEST_FILE");
  }
});

Deno.test("runGate() ends with its codes when it cannot begin", async (t) => {
  const expect = async (name: string, options: Options, code: number, detail: RegExp) => {
    await t.step(name, async () => {
      await using it = await setup(options);
      const outcome = await it.run();
      assert.equal(outcome.code, code, outcome.detail);
      assert.match(outcome.detail, detail);
      assert.equal(it.facade.calls.includes("FetchTask"), false);
    });
  };
  await expect("no SVID", { svid: "none", limits: { identityMs: 100 } }, EXIT.identity, /no SVID/);
  await expect(
    "a facade of another identity",
    { facadeId: "spiffe://example.org/other" },
    EXIT.facadeSilent,
    /met "spiffe:\/\/example.org\/controller", wanted "spiffe:\/\/example.org\/other"/,
  );
  await expect("a wrong capability", { capability: "x".repeat(20) }, EXIT.claimRefused, /refused/);
  await expect("no runner", { runner: ["/nowhere/runner"] }, EXIT.runnerStart, /Start runner/);
  await expect(
    "a runner that ends",
    { runner: ["/bin/true"] },
    EXIT.noTask,
    /before it had a task/,
  );
});

Deno.test("runGate() sends nothing to a facade of another identity", async () => {
  await using it = await setup({ facadeId: "spiffe://example.org/other" });
  await it.run();
  assert.deepEqual(it.facade.calls, []);
});

Deno.test("runGate() ends when the facade refuses the claim", async () => {
  await using it = await setup();
  const task = it.facade.task;
  // A task of another assignment must not be run either.
  it.facade.task = task === undefined ? undefined : { ...task, id: 8n };
  const outcome = await it.run();
  assert.equal(outcome.code, EXIT.claimRefused);
  assert.match(outcome.detail, /offered task 8, this executor is for 7/);
});

Deno.test("runGate() takes a new SVID into use without losing a call", async () => {
  await using it = await setup({ workflow: job("for i in 1 2 3 4; do echo $i; sleep 0.5; done") });
  const running = it.run();
  await eventually(() => it.facade.rows.includes("1"), { what: "the first row" });
  const serial = await it.rotate();
  assert.equal((await running).code, EXIT.delivered);
  assert.equal([...it.facade.peers].some((peer) => peer.endsWith(serial.toUpperCase())), true);
  assert.equal(it.facade.peers.size, 2);
  assert.deepEqual(printed(it.facade), ["1", "2", "3", "4"]);
});
