import assert from "node:assert/strict";
import type { Config } from "../controller/config/config.ts";
import { noRecorder } from "../controller/recorder.ts";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { Secret } from "../lib/secret.ts";
import { specOf } from "../tests/contract/backend_suite.ts";
import { FAKE_KEY, startFakeOpenSandbox } from "../tests/fakes/opensandbox.ts";
import { call } from "../tests/support/calls.ts";
import { ok, PRODUCTION } from "../tests/support/config_env.ts";
import type { PartsContext } from "./parts.ts";
import { createSources, type Sources } from "./sources.ts";
import { openSandboxes } from "./vm_parts.ts";

function configOf(
  env: Readonly<Record<string, string | undefined>>,
  files: Readonly<Record<string, string>> = {},
): Config {
  return ok({ ...PRODUCTION, ...env }, files);
}

function contextOf(stack: AsyncDisposableStack, sources: Sources): PartsContext {
  return {
    version: "0",
    env: {},
    isRoot: false,
    clock: systemClock,
    random: Math.random,
    logger: silentLogger,
    announce() {},
    stack,
    sources,
    recorder: noRecorder,
  };
}

const NO_RECORDS = { get: () => Promise.resolve(undefined) };
const GITEA = { url: "x", uuid: "u", token: new Secret("t") };

Deno.test("openSandboxes() makes sandboxes as configured, and none before this process leads", async () => {
  await using server = startFakeOpenSandbox();
  await using stack = new AsyncDisposableStack();
  const config = configOf({
    OPENSANDBOX_API: server.url,
    OPENSANDBOX_API_KEY: FAKE_KEY,
    VM_TIMEOUT_SECONDS: "7200",
    METADATA_PREFIX: "ci.example.org",
  });
  const sources = createSources(systemClock, { self: "me", mode: "none" });
  const { vmBackend } = openSandboxes(config, contextOf(stack, sources));
  assert.equal(sources.all().opensandbox.state, "unknown");
  let leads = false;
  const backend = await vmBackend(GITEA, () => {
    if (!leads) throw new Error("does not lead");
  }, NO_RECORDS);
  assert.equal(backend.name, "vm");
  await assert.rejects(backend.create(specOf("1", "vm"), call), /does not lead$/);
  assert.deepEqual(server.created, []);
  leads = true;
  await backend.create(specOf("1", "vm"), call);
  const [body] = server.created as { timeout: number; env: Record<string, string> }[];
  assert.equal(body?.timeout, 7200);
  assert.equal(body?.env["SPIFFE_ENDPOINT_SOCKET"], PRODUCTION["SPIFFE_ENDPOINT_SOCKET"]);
  assert.equal(sources.all().opensandbox.state, "up");
});

Deno.test("openSandboxes() takes the key that is in its file by now", async () => {
  await using server = startFakeOpenSandbox();
  await using stack = new AsyncDisposableStack();
  const file = await Deno.makeTempFile();
  stack.defer(() => Deno.remove(file));
  const config = configOf({
    OPENSANDBOX_API: server.url,
    OPENSANDBOX_API_KEY: undefined,
    OPENSANDBOX_API_KEY_FILE: file,
  }, { [file]: "the-key-of-yesterday\n" });
  const sources = createSources(systemClock, { self: "me", mode: "none" });
  const { vmBackend } = openSandboxes(config, contextOf(stack, sources));
  const backend = await vmBackend(GITEA, () => {}, NO_RECORDS);
  await assert.rejects(backend.list(call), /401: INVALID_API_KEY/);
  await Deno.writeTextFile(file, `${FAKE_KEY}\n`);
  assert.deepEqual(await backend.list(call), []);
  assert.equal(sources.all().opensandbox.state, "up");
});
