import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { Secret } from "../../lib/secret.ts";
import type { Task } from "../../proto/gen/runner/v1/messages_pb.ts";
import { encodePlainEnvelope } from "../../tests/support/plain_envelope.ts";
import { fc } from "../../tests/support/property.ts";
import { sampleTask } from "../../tests/support/tasks.ts";
import type { AssignmentInfo } from "./assignment_info.ts";
import { placeTask } from "./assignment.ts";
import { createEnvelopeCodec, MAX_TASK_BYTES } from "./envelope.ts";

const options = { trustDomain: "example.org", defaultBackend: null };
const first = new Secret("first key of thirty-two characters");
const second = new Secret("second key of thirty-two characters");
const codec = createEnvelopeCodec([first], options);

function infoOf(task: Task): AssignmentInfo {
  const placed = placeTask(task, { ...options, defaultBackend: "pod" });
  assert.ok(placed.kind === "placed");
  return placed.info;
}
const fields = (data: Uint8Array) => JSON.parse(new TextDecoder().decode(data));
const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

Deno.test("open() gives back what seal() was given", async () => {
  const task = sampleTask();
  const opened = await codec.open(await codec.seal(infoOf(task), task));
  assert.deepEqual(opened, { kind: "readable", info: infoOf(task), task });
});

Deno.test("seal() writes the fields of version 2 and no readable payload", async () => {
  const task = sampleTask({ secrets: { PASSWORD: "planted-secret-value" } });
  const data = await codec.seal(infoOf(task), task);
  const { keyId, nonce, task: sealed, ...others } = fields(data);
  assert.deepEqual(others, {
    version: 2,
    id: "gitea-task-11",
    backend: "pod",
    identity: "spiffe://example.org/ci/peeradmin/demo/second",
  });
  assert.match(keyId, /^[0-9a-f]{16}$/);
  assert.equal(Uint8Array.fromBase64(nonce).length, 12);
  const clear = new TextDecoder("latin1").decode(Uint8Array.fromBase64(sealed));
  assert.ok(!clear.includes("planted-secret") && !clear.includes("self-hosted"));
});

Deno.test("seal() uses a new nonce each time", async () => {
  const task = sampleTask();
  const nonces = new Set<string>();
  for (let i = 0; i < 50; i++) nonces.add(fields(await codec.seal(infoOf(task), task)).nonce);
  assert.equal(nonces.size, 50);
});

Deno.test("seal() compresses a task that gets smaller by it", async () => {
  const task = sampleTask({ secrets: { LONG: "a".repeat(100_000) } });
  const data = await codec.seal(infoOf(task), task);
  assert.ok(data.length < 5_000);
  assert.equal((await codec.open(data)).kind, "readable");
});

Deno.test("open() reads envelopes of every current key, and only of those", async () => {
  const task = sampleTask();
  const old = await codec.seal(infoOf(task), task);
  const rotated = createEnvelopeCodec([second, first], options);
  assert.equal((await rotated.open(old)).kind, "readable");
  const fresh = await rotated.seal(infoOf(task), task);
  assert.equal((await codec.open(fresh)).kind, "unreadable");
  assert.notEqual(fields(old).keyId, fields(fresh).keyId);
});

Deno.test("open() reads version 1, compressed or not", async () => {
  const task = sampleTask({ secrets: { LONG: "a".repeat(1_000) } });
  const plain = encodePlainEnvelope(infoOf(task), task);
  assert.equal(fields(plain).version, 1);
  assert.equal(Uint8Array.fromBase64(fields(plain).task)[0], 0x1f);
  assert.deepEqual(await codec.open(plain), { kind: "readable", info: infoOf(task), task });
  const small = sampleTask({ workflow: "jobs: {second: {runs-on: [self-hosted, pod]}}" });
  assert.equal((await codec.open(encodePlainEnvelope(infoOf(small), small))).kind, "readable");
});

const differences: [string, Partial<Record<string, string>>][] = [
  ["another id", { id: "gitea-task-12" }],
  ["another backend", { backend: "vm" }],
  ["another identity", { identity: "spiffe://example.org/ci/peeradmin/demo/other" }],
  ["the identity of a fork", { identity: "spiffe://example.org/ci-fork/peeradmin/demo/second" }],
];
for (const [name, change] of differences) {
  Deno.test(`open() refuses ${name} in both versions`, async () => {
    const task = sampleTask();
    const plain = fields(encodePlainEnvelope(infoOf(task), task));
    const opened = await codec.open(encode({ ...plain, ...change }));
    assert.ok(opened.kind === "invalid" && opened.taskId === "11");
    assert.match(opened.detail, /is not that of its task/);
    const sealed = fields(await codec.seal(infoOf(task), task));
    const broken = await codec.open(encode({ ...sealed, ...change }));
    assert.ok(broken.kind === "invalid" && /seal is broken/.test(broken.detail));
  });
}

Deno.test("open() refuses what a faulty program sealed", async () => {
  const task = sampleTask();
  const data = await codec.seal({ ...infoOf(task), backend: "vm" }, task);
  const opened = await codec.open(data);
  assert.ok(opened.kind === "invalid" && opened.taskId === "11");
});

Deno.test("open() keeps the backend of a bare self-hosted job when the default changes", async () => {
  const task = sampleTask({ workflow: "jobs: {second: {runs-on: self-hosted}}" });
  const data = await createEnvelopeCodec([first], { ...options, defaultBackend: "pod" })
    .seal(infoOf(task), task);
  for (const defaultBackend of ["vm", null] as const) {
    const opened = await createEnvelopeCodec([first], { ...options, defaultBackend }).open(data);
    assert.ok(opened.kind === "readable" && opened.info.backend === "pod");
  }
});

const unknown: [string, Uint8Array][] = [
  ["nothing", new Uint8Array()],
  ["garbage", new Uint8Array([0xff, 0x00, 0x1f])],
  ["a text", encode("hello")],
  ["a list", encode([])],
  ["null", encode(null)],
  ["no version", encode({ id: "gitea-task-11" })],
  ["a later version", encode({ version: 3, id: "gitea-task-11" })],
  ["a version as text", encode({ version: "2", id: "gitea-task-11" })],
  ["no key id", encode({ version: 2, id: "gitea-task-11" })],
];
for (const [name, data] of unknown) {
  Deno.test(`open() finds ${name} unreadable`, async () => {
    assert.equal((await codec.open(data)).kind, "unreadable");
  });
}

Deno.test("open() refuses a task that unpacks to more than the limit", async () => {
  const task = sampleTask();
  const plain = fields(encodePlainEnvelope(infoOf(task), task));
  const bomb = new Uint8Array(gzipSync(new Uint8Array(MAX_TASK_BYTES + 1), { level: 1 }));
  const opened = await codec.open(encode({ ...plain, task: bomb.toBase64() }));
  assert.deepEqual(opened, {
    kind: "invalid",
    detail: "the envelope's task cannot be decoded",
    taskId: "11",
  });
});

Deno.test("open() never takes a damaged envelope for a readable one", async () => {
  const task = sampleTask();
  const data = await codec.seal(infoOf(task), task);
  await fc.assert(
    fc.asyncProperty(fc.nat(data.length - 1), fc.integer({ min: 0, max: 7 }), async (at, bit) => {
      const damaged = data.slice();
      damaged[at] = (damaged[at] ?? 0) ^ (1 << bit);
      assert.notEqual((await codec.open(damaged)).kind, "readable");
      assert.notEqual((await codec.open(data.subarray(0, at))).kind, "readable");
    }),
    { numRuns: 500 },
  );
});

Deno.test("open() tells no part of the payload in its details", async () => {
  const task = sampleTask({ secrets: { PASSWORD: "planted-secret-value" } });
  const plain = fields(encodePlainEnvelope(infoOf(task), task));
  for (const change of [{ id: "x" }, { backend: "x" }, { identity: 1 }, { task: "x" }]) {
    const opened = await codec.open(encode({ ...plain, ...change }));
    assert.ok(opened.kind === "invalid" && !opened.detail.includes("planted"));
  }
});

Deno.test("createEnvelopeCodec() wants a key", () => {
  assert.throws(() => createEnvelopeCodec([], options), TypeError);
});
