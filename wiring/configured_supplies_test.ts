import assert from "node:assert/strict";
import { KEY, ok, PRODUCTION, UUID } from "../tests/support/config_env.ts";
import { createConfiguredSupplies } from "./configured_supplies.ts";

const signal = new AbortController().signal;

Deno.test("createConfiguredSupplies() gives everything as configured, and starts nothing", async () => {
  const supplies = createConfiguredSupplies(ok({ ...PRODUCTION, RUNNER_FACADE_LISTEN: ":9443" }));
  const nats = await supplies.nats(signal);
  assert.deepEqual(nats.servers, ["nats://nats-0.nats:4222", "nats://nats-1.nats:4222"]);
  const gitea = await supplies.gitea(signal);
  assert.equal(gitea.url, "https://gitea.example.org");
  assert.equal(gitea.uuid, UUID);
  assert.equal(gitea.token.reveal(), PRODUCTION.GITEA_RUNNER_TOKEN);
  assert.deepEqual((await supplies.capabilityKeys()).map((key) => key.reveal()), [KEY]);
  assert.equal(await supplies.facadePort(), 9443);
  assert.equal(await supplies.place(), null, "replicas live anywhere");
});

Deno.test("createConfiguredSupplies() names what is missing", () => {
  const supplies = createConfiguredSupplies(ok({ PROFILE: "embedded" }));
  assert.throws(() => supplies.nats(signal), /NATS_URL is required/);
});
