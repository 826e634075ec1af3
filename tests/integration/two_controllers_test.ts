import assert from "node:assert/strict";
import { createBucket } from "../../clients/nats/bucket.ts";
import { createControlStore, EPOCH_KEY } from "../../clients/nats/control_store.ts";
import { systemClock } from "../../lib/clock.ts";
import {
  type ControllerPlace,
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats } from "../support/nats.ts";
import { connectTo } from "../support/nats_world.ts";
import { type ServedForge, serveForge } from "../support/served_forge.ts";

interface Leader {
  readonly holder: string | null;
  readonly self: string;
  readonly leading: boolean;
}

/** Servers that no controller owns, and how to start controllers with one registration on them. */
async function setup() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const forge: ServedForge = stack.use(serveForge());
  const env = {
    ...forge.env,
    PROFILE: "embedded",
    ...natsEnvironment(nats),
    CAPABILITY_KEY: "two-controllers-".repeat(3),
    LOG_FORMAT: "json",
  };
  const owned = stack.move();
  return {
    nats,
    forge,
    start: (place: ControllerPlace, more: Readonly<Record<string, string>> = {}) =>
      startController({ stateDir: place.stateDir, env: { ...env, ...more } }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const leader = (controller: ControllerProcess) => controller.get<Leader>("/api/v1/leader");

async function ready(controller: ControllerProcess): Promise<boolean> {
  const response = await fetch(`${await controller.url()}/readyz`);
  await response.body?.cancel();
  return response.ok;
}

function leads(controller: ControllerProcess, timeoutMs: number): Promise<unknown> {
  return eventually(async () => (await leader(controller)).leading && await ready(controller), {
    what: "the controller to lead",
    timeoutMs,
    everyMs: 50,
  });
}

/** An action on an assignment that nobody has. */
async function retry(controller: ControllerProcess) {
  const response = await fetch(`${await controller.url()}/api/v1/assignments/gitea-task-1/retry`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ note: "by a test" }),
  });
  const { detail } = await response.json() as { readonly detail: string };
  return { status: response.status, detail };
}

Deno.test("main waits while another one with the same registration lives, and takes over within 2 s of its stop", async () => {
  await using world = await setup();
  await using here = await createControllerPlace();
  await using there = await createControllerPlace();
  await using first = await world.start(here);
  await leads(first, 20_000);
  const declared = world.forge.calls("Declare");

  await using second = await world.start(there);
  await second.logged("another controller leads, this one waits");
  const { self: firstName } = await leader(first);
  const seen = await leader(second);
  assert.deepEqual([seen.holder, seen.leading], [firstName, false]);
  assert.notEqual(seen.self, firstName);
  const readiness = await second.get<{ role: string }>("/readyz");
  assert.equal(readiness.role, "standby");
  assert.equal(world.forge.calls("Declare"), declared);
  assert.match(
    await (await fetch(await second.url())).text(),
    /This replica is a standby/,
  );

  const [done, refused] = await Promise.all([retry(first), retry(second)]);
  assert.equal(done.status, 404);
  assert.equal(refused.status, 503);
  assert.match(refused.detail, new RegExp(`Ask the leader: it is "${firstName}"`));

  assert.equal(await first.end("SIGTERM"), 0, await first.text());
  const since = performance.now();
  await leads(second, 10_000);
  assert.ok(performance.now() - since < 2_000, `${performance.now() - since} ms`);
  world.forge.dispatch("after", "echo after");
  await eventually(() => world.forge.job("after")?.result === "success", {
    what: "the job to end",
    timeoutMs: 20_000,
  });
  assert.equal(await second.end("SIGTERM"), 0, await second.text());
});

Deno.test("main takes over within 20 s of a crash elsewhere, and at once of its own", async () => {
  await using world = await setup();
  await using here = await createControllerPlace();
  await using there = await createControllerPlace();
  {
    await using first = await world.start(here);
    await leads(first, 20_000);
  }
  {
    // Its own STATE_DIR: nobody else can live there.
    await using again = await world.start(here);
    await again.logged("controller is up");
    const since = performance.now();
    await leads(again, 20_000);
    assert.ok(performance.now() - since < 3_000, `${performance.now() - since} ms`);
    await again.end("SIGKILL");
  }
  await using other = await world.start(there);
  await other.logged("another controller leads, this one waits");
  const since = performance.now();
  await leads(other, 30_000);
  assert.ok(performance.now() - since < 20_000, `${performance.now() - since} ms`);
  assert.equal(await other.end("SIGTERM"), 0);
});

Deno.test("main that was stopped for so long that another one leads does nothing more when it is woken", async () => {
  await using world = await setup();
  await using here = await createControllerPlace();
  await using there = await createControllerPlace();
  await using first = await world.start(here);
  await leads(first, 20_000);
  await using second = await world.start(there);
  await second.logged("another controller leads, this one waits");
  first.signal("SIGSTOP");
  await leads(second, 30_000);
  world.forge.dispatch("after", "echo after");
  await eventually(() => world.forge.job("after")?.result === "success", {
    what: "the job to end",
    timeoutMs: 20_000,
  });
  const declared = world.forge.calls("Declare");
  first.signal("SIGCONT");
  const limit = setTimeout(() => first.signal("SIGKILL"), 15_000);
  assert.equal(await first.exited, 3, await first.text());
  clearTimeout(limit);
  assert.match(await first.text(), /scheduler leadership lost/);
  assert.equal(world.forge.calls("Declare"), declared);
  assert.ok((await leader(second)).leading);
  assert.equal(await second.end("SIGTERM"), 0, await second.text());
});

Deno.test("main ends with exit code 3 soon after another one has raised the epoch", async () => {
  await using world = await setup();
  await using here = await createControllerPlace();
  await using first = await world.start(here);
  await leads(first, 20_000);
  await using connection = connectTo(world.nats);
  const deps = { clock: systemClock };
  const call = { signal: AbortSignal.timeout(5_000) };
  const epoch = await createControlStore(connection, deps).takeOver(call);
  const since = performance.now();
  const limit = setTimeout(() => first.signal("SIGKILL"), 20_000);
  assert.equal(await first.exited, 3, await first.text());
  clearTimeout(limit);
  assert.ok(performance.now() - since < 14_000, `${performance.now() - since} ms`);
  assert.match(await first.text(), /scheduler leadership lost: epoch \d+ leads/);
  // It has written nothing after that.
  const kept = await createBucket(connection, deps).get(EPOCH_KEY, call);
  assert.equal(kept?.value.epoch, epoch);
});

Deno.test("main as a standby is ready, shows what the leader shows, and refuses actions", async () => {
  await using world = await setup();
  await using here = await createControllerPlace();
  await using there = await createControllerPlace();
  const address = `127.0.0.1:${freePort()}`;
  const advertised = { ADMIN_LISTEN: address, ADMIN_ADVERTISE: address };
  await using first = await world.start(here, advertised);
  await leads(first, 20_000);
  world.forge.dispatch("shown", "echo shown");
  await eventually(() => world.forge.job("shown")?.result === "success", {
    what: "the job to end",
    timeoutMs: 20_000,
  });
  await using second = await world.start(there);
  await second.logged("another controller leads, this one waits");
  assert.equal((await second.get<{ role: string }>("/readyz")).role, "standby");
  const url = await second.url();
  const page = await fetch(url);
  const holder = (await leader(first)).self;
  assert.equal(page.headers.get("gdr-answered-by"), holder);
  assert.match(await page.text(), /shown/);
  const status = await second.get<{ leader: Leader }>("/api/v1/status");
  assert.ok(status.leader.leading && status.leader.self === holder);
  assert.equal((await retry(second)).status, 503);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, /^gdr_leader 0$/m);

  // What is left of a leader that is gone is the events stream.
  await first.end("SIGKILL");
  const history = await fetch(`${url}/api/v1/history`);
  assert.equal(history.headers.get("gdr-answered-by"), null);
  assert.ok((await history.json()).items.length > 0);
});

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
