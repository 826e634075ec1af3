import assert from "node:assert/strict";
import { startTrustDomain } from "../../embedded/trust_domain.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { AuditView, LeaderView, OperationView, Page } from "../../controller/views/views.ts";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats } from "../support/nats.ts";
import { serveForge } from "../support/served_forge.ts";

const FACADE_ID = "spiffe://step-down.example/gitea-dynamic-runner/facade";

/** Replicas that need nothing but Gitea, NATS and an identity: they fetch, and run nothing. */
async function setup() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const forge = stack.use(serveForge());
  const directory = await Deno.makeTempDir({ prefix: "gdr-step-down-" });
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  const domain = stack.use(
    await startTrustDomain({
      directory: `${directory}/trust`,
      trustDomain: "step-down.example",
      clock: systemClock,
      logger: silentLogger,
    }),
  );
  const env = {
    ...forge.env,
    ...natsEnvironment(nats),
    PROFILE: "production",
    COMPONENTS: "scheduler",
    LEADER_ELECTION: "none",
    // Asked for, and not used: no worker runs here.
    EXECUTORS: "process",
    SPIRE_SERVER_SOCKET: "unix:///nonexistent/spire-server.sock",
    SPIRE_PARENT_ID: "spiffe://step-down.example/spire/agent/none",
    TRUST_DOMAIN: "step-down.example",
    SPIFFE_ENDPOINT_SOCKET: await domain.endpointFor(FACADE_ID),
    RUNNER_FACADE_LISTEN: "127.0.0.1:0",
    RUNNER_FACADE_URL: "https://127.0.0.1:1",
    RUNNER_FACADE_SPIFFE_ID: FACADE_ID,
    CAPABILITY_KEY: "step-down-key-".repeat(3),
    HEALTH_LISTEN: "127.0.0.1:0",
    LOG_FORMAT: "json",
  };
  const owned = stack.move();
  return {
    start: (stateDir: string) => startController({ stateDir, env }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const leads = (controller: ControllerProcess) =>
  eventually(async () => (await controller.get<LeaderView>("/api/v1/leader")).leading, {
    what: "the controller to lead",
    timeoutMs: 20_000,
    everyMs: 50,
  });

Deno.test("main steps down: answered, exit code 3, and the other one leads within 2 s", async () => {
  await using world = await setup();
  await using here = await createControllerPlace();
  await using there = await createControllerPlace();
  await using first = await world.start(here.stateDir);
  await first.logged("controller is up");
  await leads(first);
  await using second = await world.start(there.stateDir);
  await second.logged("another controller leads, this one waits");

  const post = async (controller: ControllerProcess, path: string) =>
    await fetch(`${await controller.url()}/api/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ note: "a node is replaced" }),
    });
  const detail = async (answer: Response) => `${answer.status} ${(await answer.json()).detail}`;
  assert.match(await detail(await post(first, "backends/pod/cordon")), /^404 Enable the backend/);
  assert.match(
    await detail(await post(second, "leader/step-down")),
    /^503 Ask the leader: it is "/,
  );
  // Each replica tells what it has refused, and reads what every other one has told.
  const seen = await eventually(async () => {
    const { items } = await second.get<Page<AuditView>>("/api/v1/audit");
    return items.length > 1 && items;
  }, { what: "both refusals in the standby's audit" });
  assert.deepEqual(seen.map(({ action, result }) => [action, result]), [
    ["step-down", "refused"],
    ["cordon", "refused"],
  ]);

  const response = await post(first, "leader/step-down");
  const operation: OperationView = await response.json();
  assert.deepEqual([response.status, operation.state], [200, "done"], JSON.stringify(operation));
  assert.equal(await first.exited, 3, await first.text());
  const since = performance.now();
  await leads(second);
  assert.ok(performance.now() - since < 2_000, `${performance.now() - since} ms`);
  assert.match(await first.text(), /stepped down by operator on this machine: a node is replaced/);
  const { items } = await second.get<Page<AuditView>>("/api/v1/audit");
  assert.deepEqual(items.map(({ action, result }) => [action, result]), [
    ["step-down", "done"],
    ["step-down", "refused"],
    ["cordon", "refused"],
  ]);
  const kept = await second.get<OperationView>(`/api/v1/operations/${operation.id}`);
  assert.deepEqual(kept, operation);
  assert.equal(await second.end("SIGTERM"), 0, await second.text());
});
