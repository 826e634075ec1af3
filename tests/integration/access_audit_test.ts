import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  type ControllerProcess,
  createControllerPlace,
  startController,
} from "../support/controller_process.ts";
import { eventually } from "../support/eventually.ts";
import { natsEnvironment, startNats } from "../support/nats.ts";
import { serveForge } from "../support/served_forge.ts";
import { tokenOf } from "../support/test_access.ts";

const ROLES = ["viewer", "operator"] as const;
const TOKENS = ROLES.map((role) =>
  `a-${role}:${role}:${createHash("sha256").update(tokenOf(role)).digest("hex")}`
).join("\n");
const SECONDS_20 = { timeoutMs: 20_000, everyMs: 50 };

interface Refusal {
  readonly actor: string;
  readonly action: string;
  readonly target: string;
  readonly requestId: string;
  readonly error: string;
}

async function ask(
  controller: ControllerProcess,
  path: string,
  role: (typeof ROLES)[number],
  init: RequestInit = {},
) {
  const response = await fetch(`${await controller.url()}/api/v1/${path}`, {
    ...init,
    headers: { "content-type": "application/json", authorization: `Bearer ${tokenOf(role)}` },
  });
  return { status: response.status, json: await response.json() };
}

/** Cordons `pod`; resolves to the status and the id of the request. */
async function cordon(controller: ControllerProcess, role: (typeof ROLES)[number]) {
  const body = JSON.stringify({ note: "by a test" });
  const { status, json } = await ask(controller, "backends/pod/cordon", role, {
    method: "POST",
    body,
  });
  return { status, requestId: String(json.requestId), detail: String(json.detail) };
}

async function audited(controller: ControllerProcess): Promise<readonly Refusal[]> {
  return (await ask(controller, "audit?result=refused", "viewer")).json.items;
}

Deno.test("what a standby and a starting controller refuse is in the audit that the leader shows", async () => {
  await using nats = await startNats();
  await using forge = serveForge();
  await using here = await createControllerPlace();
  await using there = await createControllerPlace();
  const start = (stateDir: string, more: Readonly<Record<string, string>> = {}) =>
    startController({
      stateDir,
      env: {
        ...forge.env,
        PROFILE: "embedded",
        ...natsEnvironment(nats),
        CAPABILITY_KEY: "audited-refusals-".repeat(3),
        LOG_FORMAT: "json",
        ADMIN_TOKENS: TOKENS,
        ...more,
      },
    });
  await nats.stop();
  await using first = await start(here.stateDir);
  const early = await cordon(first, "operator");
  const barred = await cordon(first, "viewer");
  assert.deepEqual([early.status, barred.status], [503, 403]);
  assert.match(early.detail, /does not lead yet/);
  await nats.restart();
  await eventually(
    async () => (await ask(first, "leader", "viewer")).json.leading === true,
    { what: "the first one to lead", ...SECONDS_20 },
  );

  await using second = await start(there.stateDir);
  await second.logged("another controller leads, this one waits");
  const late = await cordon(second, "operator");
  const lateBarred = await cordon(second, "viewer");
  assert.deepEqual([late.status, lateBarred.status], [503, 403]);

  const expected = [early, barred, late, lateBarred].map(({ requestId }) => requestId);
  const seen = await eventually(async () => {
    const found = await audited(first);
    return expected.every((id) => found.some(({ requestId }) => requestId === id)) && found;
  }, { what: "the leader's audit to have all four", ...SECONDS_20 });
  assert.deepEqual(
    seen.toReversed().map(({ actor, action, target }) => `${actor} ${action} ${target}`),
    [
      "a-operator cordon pod",
      "a-viewer cordon pod",
      "a-operator cordon pod",
      "a-viewer cordon pod",
    ],
  );
  assert.match(seen[1]?.error ?? "", /^Ask the leader: it is "/);
  assert.equal(await second.end("SIGTERM"), 0, await second.text());
  assert.equal(await first.end("SIGTERM"), 0, await first.text());
});
