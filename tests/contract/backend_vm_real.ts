/**
 * The contract of backends on a real opensandbox-server, on a stand-in of an API server or, with
 * `VM_ON=kube`, on a real one. Not found by `deno task test`, which needs no servers:
 * `deno test -A tests/contract/backend_vm_real.ts`.
 */
import assert from "node:assert/strict";
import { createMetadataCodec } from "../../backends/vm/metadata_codec.ts";
import { type Sandbox, SandboxError, type Sandboxes } from "../../backends/vm/sandboxes.ts";
import { createLifecycle, type Lifecycle } from "../../clients/opensandbox/lifecycle.ts";
import { systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { callsWithin } from "../support/calls.ts";
import { eventually } from "../support/eventually.ts";
import { createKubeClient, type KubeClient } from "../support/kube_client.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { refusal } from "../support/rejections.ts";
import { removeMetadata } from "../support/sandbox_metadata.ts";
import {
  boundIn,
  sandboxMetadata,
  signedSpec,
  VM_PREFIX,
  vmBackend,
} from "../support/vm_backend_setup.ts";
import { openSandboxObjects, sandboxObject, type SandboxObjects } from "../vm/sandbox_objects.ts";
import { backendContract } from "./backend_contract.ts";
import { specOf } from "./backend_suite.ts";

const ON_KUBE = Deno.env.get("VM_ON") === "kube";
const NAMESPACE = "opensandbox";
const SANDBOXES = `/apis/sandbox.opensandbox.io/v1alpha1/namespaces/${NAMESPACE}/batchsandboxes`;

let peers: Peers | undefined;
let api: Lifecycle | undefined;
let admin: KubeClient | undefined;
Deno.test.beforeAll(async () => {
  peers = await startPeers({
    which: ON_KUBE ? ["kube", "opensandbox"] : ["opensandbox"],
    env: { OS_POOL_MAX: "40", OS_POOL_WAIT: "2", OS_CREATE_WAIT: "6" },
  });
  api = open();
  if (ON_KUBE) admin = await createKubeClient(peers.kube);
  // Connections that a test opens are its own leak: these are opened now.
  await Promise.all(Array.from({ length: 8 }, () => api?.list({}, call)));
});
Deno.test.afterAll(async () => {
  api?.[Symbol.dispose]();
  admin?.[Symbol.dispose]();
  await peers?.[Symbol.asyncDispose]();
});

const call = callsWithin(60_000);

function open(): Lifecycle {
  assert.ok(peers !== undefined);
  const { url, apiKey } = peers.opensandbox;
  return createLifecycle({ url, apiKey: new Secret(apiKey), clock: systemClock });
}

function client(): Lifecycle {
  assert.ok(api !== undefined);
  return api;
}

function objects(): SandboxObjects {
  assert.ok(peers !== undefined);
  return openSandboxObjects(peers);
}

async function ids(name: string): Promise<string[]> {
  const selector = createMetadataCodec(VM_PREFIX).selectorOf(name);
  assert.ok(selector !== undefined);
  return (await client().list(selector, call)).map(({ id }) => id);
}

async function idOf(name: string): Promise<string> {
  const [id] = await ids(name);
  assert.ok(id !== undefined, `a sandbox of "${name}"`);
  return id;
}

async function clear(): Promise<void> {
  await stub({ delay: 0.05, fail: false, hang: false, keep_terminating: 0 });
  for (const { id } of await client().list({}, call)) await client().delete(id, call);
}

/** Fault switches of the stand-in. */
async function stub(switches: Readonly<Record<string, unknown>>): Promise<void> {
  if (!ON_KUBE) await peers?.script("opensandbox.sh", "stub", JSON.stringify(switches));
}

/** What its program is started with, as the server stored it. */
async function environmentOf(id: string): Promise<Readonly<Record<string, string>>> {
  const object = admin === undefined
    ? (await objects().list()).find(({ name }) => name === id)
    : sandboxObject(await admin.call("GET", `${SANDBOXES}/${id}`));
  assert.ok(object !== undefined, `an object of sandbox "${id}"`);
  return object.environment;
}

async function fail(id: string): Promise<void> {
  if (admin === undefined) {
    await objects().ended(id, "fail");
    return;
  }
  const status = { taskRunning: 0, taskFailed: 1, taskSucceed: 0 };
  await admin.call("PATCH", `${SANDBOXES}/${id}/status`, { status });
}

/** Loses the answer of a create when it is told to. */
function lossy(state: { lose: boolean }): Sandboxes {
  const real = client();
  return {
    ...real,
    async create(sandbox, call) {
      const made: Sandbox = await real.create(sandbox, call);
      if (!state.lose) return made;
      state.lose = false;
      throw new SandboxError("unknown_outcome", "connection lost");
    },
  };
}

backendContract(`VM backend on a real server${ON_KUBE ? " and API server" : ""}`, async () => {
  await clear();
  const state = { lose: false };
  return {
    backend: vmBackend(lossy(state)),
    reopen: () => Promise.resolve(vmBackend(client())),
    end: async (name) => await fail(await idOf(name)),
    async corrupt(name) {
      await client().patch(await idOf(name), { [`${VM_PREFIX}/annotations-001`]: "x" }, call);
    },
    async boundTo(name) {
      const [id] = await ids(name);
      return boundIn(id === undefined ? undefined : (await client().get(id, call))?.metadata);
    },
    async unbind(name) {
      assert.ok(peers !== undefined);
      await removeMetadata(peers.opensandbox, await idOf(name), `${VM_PREFIX}/identity`);
    },
    environmentOf: async (name) => await environmentOf(await idOf(name)),
    loseNextAnswer() {
      state.lose = true;
    },
    tellsEnd: "failure",
    [Symbol.asyncDispose]: clear,
  };
}, { backend: "vm" });

Deno.test("a missing pool and a refused key are said in words, and nothing is made", async () => {
  await clear();
  const missing = await refusal(
    vmBackend(client(), { pool: "no-such" }).create(specOf("1", "vm"), call),
  );
  assert.equal(missing.code, "refused");
  assert.match(missing.message, /KUBERNETES::POOL_NOT_FOUND/);
  const url = peers?.opensandbox.url ?? "";
  using stranger = createLifecycle({ url, apiKey: new Secret("wrong-key"), clock: systemClock });
  const refused = await refusal(vmBackend(stranger).find(specOf("1", "vm").name, call));
  assert.equal(refused.code, "refused");
  assert.match(refused.message, /401: INVALID_API_KEY.*check OPENSANDBOX_API_KEY/);
  assert.doesNotMatch(refused.message, /wrong-key/);
  assert.deepEqual(await ids(specOf("1", "vm").name), []);
});

Deno.test({
  name: "a start that fails, one that hangs, and a full pool leave nothing behind",
  ignore: ON_KUBE, // The switches are the stand-in's.
  async fn() {
    await clear();
    const backend = vmBackend(client());
    await stub({ fail: true });
    const failed = await backend.create(specOf("1", "vm"), call);
    assert.equal(failed.ended?.code, "image_pull");
    assert.match(failed.ended?.detail ?? "", /ImagePullBackOff/);
    await backend.delete(failed, call);
    await stub({ fail: false, hang: true });
    const hung = await refusal(backend.create(specOf("2", "vm"), call));
    assert.equal(hung.code, "quota");
    assert.match(hung.message, /POD_READY_TIMEOUT/);
    const resting = await refusal(backend.create(specOf("3", "vm"), call));
    assert.match(resting.message, /not tried: pool "ci-vm" is asked again in/);
    assert.deepEqual(await client().list({}, call), []);
    await stub({ hang: false });
    const small = vmBackend(client(), { pool: "small" });
    const { url, apiKey } = peers?.opensandbox ?? { url: "", apiKey: "" };
    const made = await fetch(`${url}/v1/pools`, {
      method: "POST",
      headers: { "open-sandbox-api-key": apiKey, "content-type": "application/json" },
      body: JSON.stringify({
        name: "small",
        template: { spec: { containers: [{ name: "main", image: "example.org/x:1" }] } },
        capacitySpec: { bufferMin: 0, bufferMax: 0, poolMin: 0, poolMax: 1 },
      }),
    });
    await made.body?.cancel();
    const first = await small.create(specOf("4", "vm"), call);
    const full = await refusal(small.create(specOf("5", "vm"), call));
    assert.equal(full.code, "quota");
    assert.match(full.message, /POOL_CAPACITY_EXHAUSTED/);
    assert.deepEqual(await ids(specOf("5", "vm").name), []);
    await small.delete(first, call);
    await small.delete(await small.create(specOf("5", "vm"), call), call);
  },
});

/** What a backend asks for, twice: as if the first answer had been lost. */
async function makeTwo(task: string): Promise<readonly [string, string]> {
  const sandbox = {
    pool: "ci-vm",
    entrypoint: ["/bin/true"],
    environment: {},
    metadata: sandboxMetadata(signedSpec(task)),
    timeoutMs: 3_600_000,
  };
  const { id } = await client().create(sandbox, call);
  return [id, (await client().create(sandbox, call)).id];
}

Deno.test("of two sandboxes of one job the recorded one stays, whichever is older", async () => {
  await clear();
  for (const which of [0, 1] as const) {
    const task = String(11 + which);
    const two = await makeTwo(task);
    const recorded = two[which];
    const backend = vmBackend(client(), { recordedUid: () => Promise.resolve(recorded) });
    assert.equal((await backend.find(specOf(task, "vm").name, call))?.uid, recorded);
    await backend.list(call);
    await backend.tidy?.(call);
    const left = await client().list({}, call);
    assert.deepEqual(left.filter(({ state }) => state !== "Stopping").map(({ id }) => id), [
      recorded,
    ]);
    await client().delete(recorded, call);
  }
});

Deno.test({
  name: "one that is deleted while it is made is gone at once, and its pool goes on",
  ignore: ON_KUBE, // The switches are the stand-in's.
  async fn() {
    await clear();
    await stub({ hang: true });
    // The request of a create that nobody waits for goes on, until its client ends.
    using own = open();
    const backend = vmBackend(own);
    const spec = specOf("13", "vm");
    const controller = new AbortController();
    const making = backend.create(spec, controller).catch(() => {});
    const found = await eventually(async () => await backend.find(spec.name, call), {
      what: "the sandbox in the list",
    });
    controller.abort(new Error("cancelled"));
    await making;
    await stub({ hang: false });
    const from = performance.now();
    await backend.delete(found, call);
    assert.equal(await backend.find(spec.name, call), undefined);
    assert.ok(performance.now() - from < 2_000, "the server looks for it for 6 s");
    const other = await backend.create(specOf("14", "vm"), call);
    await backend.delete(other, call);
  },
});

Deno.test({
  name: "one that stays in deletion is told as such, and may be deleted again",
  ignore: ON_KUBE,
  async fn() {
    await clear();
    const backend = vmBackend(client());
    const spec = specOf("15", "vm");
    const made = await backend.create(spec, call);
    await stub({ keep_terminating: 3 });
    await backend.delete(made, call);
    const left = await backend.find(spec.name, call);
    assert.equal(left?.uid, made.uid);
    assert.equal(left?.terminating, true);
    await backend.delete(made, call);
    await refusal(backend.create(spec, call));
    await eventually(async () => await backend.find(spec.name, call) === undefined, {
      what: "its end",
    });
    await stub({ keep_terminating: 0 });
  },
});

Deno.test({
  name: "a server that was killed tells of all sandboxes as soon as it answers",
  sanitizeResources: false, // Connections whose peer was killed.
  sanitizeOps: false,
  async fn() {
    await clear();
    const backend = vmBackend(client());
    const made = await Promise.all(
      ["21", "22", "23", "24"].map((task) => backend.create(specOf(task, "vm"), call)),
    );
    const note = await Deno.readTextFile(`${peers?.folder}/pids/opensandbox-server`);
    Deno.kill(Number(note.split(" ")[0]), "SIGKILL");
    const starting = peers?.script("opensandbox.sh", "start", ON_KUBE ? "real" : "stub");
    const first = await eventually(() => backend.list(call).catch(() => undefined), {
      what: "an answer",
      timeoutMs: 30_000,
    });
    assert.deepEqual(first.map(({ uid }) => uid).sort(), made.map(({ uid }) => uid).sort());
    await starting;
    await clear();
  },
});
