import assert from "node:assert/strict";
import type { AuditView, OperationView, Page } from "../../controller/views/views.ts";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { runCtl } from "../../tools/ctl.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats } from "../support/nats.ts";
import { serveForge } from "../support/served_forge.ts";

/** Forge and NATS that no controller owns; jobs that end when a file is there. */
async function setup() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats({ jetstreamSync: "always" }));
  const forge = stack.use(serveForge());
  const place = stack.use(await createControllerPlace());
  const folder = await Deno.makeTempDir({ prefix: "gdr-actions-" });
  await Deno.chmod(folder, 0o755);
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const owned = stack.move();
  return {
    nats,
    forge,
    start: (env: Readonly<Record<string, string>> = {}) =>
      startController({
        stateDir: place.stateDir,
        env: {
          ...forge.env,
          PROFILE: "embedded",
          ...natsEnvironment(nats),
          CAPABILITY_KEY: "operator-actions-".repeat(3),
          POD_CAPACITY: "2",
          VM_RUNNER_LABEL: "vm-dev",
          LOG_FORMAT: "json",
          ...env,
        },
      }),
    /** A job that runs until {@link finish}. */
    hold: (job: string, label?: string) =>
      forge.dispatch(job, `until [ -e ${folder}/end ]; do sleep 0.1; done`, label),
    finish: () => Deno.writeTextFile(`${folder}/end`, ""),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function post<T = OperationView>(
  controller: ControllerProcess,
  path: string,
  body: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: T }> {
  const response = await fetch(`${await controller.url()}/api/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ note: "by a test", ...body }),
  });
  return { status: response.status, body: await response.json() };
}

const ready = (controller: ControllerProcess) =>
  eventually(async () => (await controller.get<{ ready: boolean }>("/api/v1/status")).ready, {
    what: "the controller to be ready",
    timeoutMs: 30_000,
  });

const counts = async (controller: ControllerProcess) => {
  const { running, waiting } = await controller.get<{ running: number; waiting: number }>(
    "/api/v1/backends/pod",
  );
  return `${running} run, ${waiting} wait`;
};

const operation = (controller: ControllerProcess, id: string) =>
  controller.get<OperationView>(`/api/v1/operations/${id}`);

/** Milliseconds until `probe` holds. */
async function within(what: string, limitMs: number, probe: () => boolean | Promise<boolean>) {
  const since = performance.now();
  await eventually(probe, { what, timeoutMs: limitMs });
  return performance.now() - since;
}

Deno.test("main drains: label gone within 2 s, SIGKILL and a late NATS in the middle, undo brings it back", async () => {
  await using t = await setup();
  const { forge, nats } = t;
  {
    await using first = await t.start();
    await ready(first);
    for (const job of ["one", "two", "three"]) t.hold(job);
    await within(
      "2 to run and 1 to wait",
      20_000,
      async () => await counts(first) === "2 run, 1 wait",
    );
    assert.ok(forge.declared().includes("pod"));

    const asked = performance.now();
    const key = { "idempotency-key": "drain-1" };
    const drain = await post(first, "backends/pod/drain", {}, key);
    assert.equal(drain.status, 202);
    await within("the label to be gone", 2_000, () => !forge.declared().includes("pod"));
    assert.ok(performance.now() - asked < 2_000);
    const again = await post(first, "backends/pod/drain", {}, key);
    assert.deepEqual([again.status, again.body.id], [202, drain.body.id]);
    assert.equal((await post(first, "backends/pod/cordon", {}, key)).status, 422);
    assert.deepEqual((await operation(first, drain.body.id)).progress, { done: 0, total: 3 });
    t.hold("four");
    await first.end("SIGKILL");
  }
  await nats.stop();
  await using second = await t.start();
  await second.logged("dashboard is up");
  await nats.restart();
  await ready(second);
  const { items } = await second.get<Page<OperationView>>("/api/v1/operations?target=pod");
  const drain = items[0] ?? assert.fail();
  await within("the progress to be read again", 5_000, async () => {
    const { state, progress } = await operation(second, drain.id);
    return state === "running" && progress.done === 0 && progress.total === 3;
  });
  assert.ok(!forge.declared().includes("pod"));
  assert.equal(forge.job("four")?.result ?? null, null);

  const undo = await post(second, `operations/${drain.id}/undo`, {});
  assert.deepEqual([undo.status, undo.body.state], [200, "done"]);
  await within("the label to be back", 2_000, () => forge.declared().includes("pod"));
  await within(
    "the fourth to be fetched",
    2_000,
    async () => await counts(second) === "2 run, 2 wait",
  );
  assert.equal((await operation(second, drain.id)).state, "undone");

  const last = await post(second, "backends/pod/drain", { deadlineSeconds: 600 });
  await t.finish();
  await within(
    "the drain to be done",
    30_000,
    async () => (await operation(second, last.body.id)).state === "done",
  );
  assert.deepEqual((await operation(second, last.body.id)).progress, { done: 4, total: 4 });
  for (const job of ["one", "two", "three", "four"]) {
    assert.equal(forge.job(job)?.result, "success", job);
  }
  const audit = await second.get<Page<AuditView>>("/api/v1/audit?target=pod");
  assert.deepEqual(
    audit.items.map(({ action, result }) => `${action} ${result}`),
    ["drain done", "undo done", "cordon refused", "drain done"],
  );
  assert.equal(await second.end("SIGTERM"), 0, await second.text());
});

Deno.test("main offers vm under the canary label, is promoted, and a changed configuration wins", async () => {
  await using t = await setup();
  const { forge } = t;
  {
    await using first = await t.start();
    await ready(first);
    forge.dispatch("production", "echo production", "vm");
    forge.dispatch("canary", "echo canary", "vm-dev");
    await within("the canary", 20_000, () => forge.job("canary")?.result === "success");
    assert.equal(forge.job("production")?.result ?? null, null);
    const seen = await fetch(`${await first.url()}/api/v1/backends/vm`);
    await seen.body?.cancel();
    const tag = seen.headers.get("etag") ?? "";
    const promoted = await post(first, "backends/vm/label", { label: "vm" }, { "if-match": tag });
    assert.equal(promoted.status, 200, JSON.stringify(promoted.body));
    await within("production", 20_000, () => forge.job("production")?.result === "success");
    assert.deepEqual(forge.declared(), ["self-hosted", "pod", "vm"]);
    const stale = await post(first, "backends/vm/cordon", {}, { "if-match": tag });
    assert.equal(stale.status, 412);
    assert.equal(await first.end("SIGTERM"), 0, await first.text());
  }
  {
    await using second = await t.start();
    await ready(second);
    assert.deepEqual(forge.declared(), ["self-hosted", "pod", "vm"], "the override stands");
    assert.equal(await second.end("SIGTERM"), 0, await second.text());
  }
  await using third = await t.start({ VM_RUNNER_LABEL: "vm" });
  await ready(third);
  const { items } = await third.get<Page<AuditView>>("/api/v1/audit?actor=configuration");
  assert.deepEqual(
    items.map(({ action, target, before, after }) => [action, target, before, after]),
    [["label", "vm", { label: "vm" }, { label: "vm" }]],
  );
  const { overrides } = await third.get<{ overrides: { label: unknown } }>("/api/v1/backends/vm");
  assert.equal(overrides.label, null);
  assert.equal(await third.end("SIGTERM"), 0, await third.text());
});

Deno.test("main releases a running job as its preview said, and a form leads to its row", async () => {
  await using t = await setup();
  const { forge } = t;
  await using controller = await t.start();
  await ready(controller);
  t.hold("forced");
  t.hold("graceful");
  await within("2 to run", 20_000, async () => await counts(controller) === "2 run, 0 wait");
  const { items } = await controller.get<Page<{ id: string; job: string }>>("/api/v1/assignments");
  const idOf = (job: string) => items.find((item) => item.job === job)?.id ?? assert.fail();

  const forced = idOf("forced");
  const preview = await controller.get<{ tag: string; slot: string; executor: { name: string } }>(
    `/api/v1/assignments/${forced}/preview?tier=forced`,
  );
  assert.equal(preview.slot, "freed_when_executor_gone");
  const answer = await post(controller, `assignments/${forced}/release`, { tier: "forced" }, {
    "if-match": preview.tag,
  });
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  await within("Gitea's end", 5_000, () => forge.job("forced")?.result === "failure");
  assert.equal(
    forge.rows("forced").at(-1),
    "gitea-dynamic-runner: given up by operator on this machine: by a test",
  );
  await within(
    "the operation",
    20_000,
    async () => (await operation(controller, answer.body.id)).state === "done",
  );

  const form = await fetch(
    `${await controller.url()}/actions/assignments/${idOf("graceful")}/cancel`,
    {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ note: "a form", key: "form-1", if_match: "" }),
    },
  );
  await form.body?.cancel();
  assert.equal(form.status, 303);
  const row = form.headers.get("location") ?? "";
  assert.match(row, /^\/operations\/op-[0-9a-f]{24}$/);
  await within("the cancel", 30_000, () => forge.job("graceful")?.result === "cancelled");
  await within(
    "its operation",
    30_000,
    async () => (await controller.get<OperationView>(`/api/v1${row}`)).state === "done",
  );
  const executors = await controller.get<Page<unknown>>("/api/v1/executors");
  assert.equal(executors.total, 0);
  let said = "";
  const ctl = async (...args: string[]) =>
    await runCtl(args, {
      env: { ADMIN_URL: await controller.url() },
      out: (text) => void (said = text),
      err: (text) => void (said = text),
      ask: null,
      signal: AbortSignal.timeout(30_000),
    });
  assert.equal(await ctl("drain", "pod", "--wait", "--note", "by ctl"), 0, said);
  assert.ok(!forge.declared().includes("pod"));
  assert.equal(await ctl("status"), 0);
  assert.match(said, /drain by operator on this machine \d+s ago \(by ctl\), 0 left/);
  assert.equal(await ctl("drain", "pod"), 3);
  assert.equal(await ctl("resume", "pod"), 0, said);
  await within("the label to be back", 2_000, () => forge.declared().includes("pod"));
  assert.equal(await ctl("audit", "--target", "pod", "--json"), 0);
  assert.deepEqual(
    JSON.parse(said).items.map(({ action, result }: AuditView) => `${action} ${result}`),
    ["resume done", "drain refused", "drain done"],
  );

  const down = await post<{ detail: string }>(controller, "leader/step-down", {});
  assert.equal(down.status, 409);
  assert.match(down.body.detail, /without an elector/);
});
