import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import type { ExecutorName } from "./ids.ts";
import { type Signed, signMetadata, verifyMetadata } from "./signature.ts";

const P = "ci.ddupan.top";
const key = new Secret("first key of thirty-two characters");
const other = new Secret("second key of thirty-two characters");
const signed = {
  name: "ci-0011223344-11" as ExecutorName,
  nonce: "nonce-1",
  prefix: P,
  metadata: {
    labels: { [`${P}/runner`]: "true", [`${P}/task-id`]: "11", [`${P}/instance`]: "0011223344" },
    annotations: { [`${P}/repository`]: "a/b", [`${P}/fork`]: "true" },
  },
};

Deno.test("signMetadata() makes the same signature for the same executor", () => {
  const signature = signMetadata(key, signed);
  assert.match(signature, /^[0-9a-f]{64}$/);
  assert.equal(signMetadata(key, structuredClone(signed)), signature);
});

Deno.test("verifyMetadata() accepts the signature of any current key", () => {
  const signature = signMetadata(key, signed);
  assert.ok(verifyMetadata([key], { ...signed, signature }));
  assert.ok(verifyMetadata([other, key], { ...signed, signature }));
  assert.ok(!verifyMetadata([other], { ...signed, signature }));
  assert.ok(!verifyMetadata([], { ...signed, signature }));
});

Deno.test("verifyMetadata() ignores what is added after the create", () => {
  const signature = signMetadata(key, signed);
  const metadata = {
    labels: { ...signed.metadata.labels, [`${P}/terminal`]: "true", app: "injected" },
    annotations: { ...signed.metadata.annotations, [`${P}/signature`]: signature },
  };
  assert.ok(verifyMetadata([key], { ...signed, metadata, signature }));
});

const { labels, annotations } = signed.metadata;
const changes: [string, Partial<Signed>][] = [
  ["another name", { name: "ci-0011223344-12" as ExecutorName }],
  ["another nonce", { nonce: "nonce-2" }],
  ["another label", { metadata: { labels: { ...labels, [`${P}/task-id`]: "12" }, annotations } }],
  ["a missing label", { metadata: { labels: {}, annotations } }],
  ["another fork flag", {
    metadata: { labels, annotations: { ...annotations, [`${P}/fork`]: "false" } },
  }],
];
for (const [name, change] of changes) {
  Deno.test(`verifyMetadata() refuses ${name}`, () => {
    const signature = signMetadata(key, signed);
    assert.ok(!verifyMetadata([key], { ...signed, ...change, signature }));
  });
}

Deno.test("verifyMetadata() refuses what is no signature", () => {
  for (const signature of [null, "", "zz", "ab", "0".repeat(64), "g".repeat(64)]) {
    assert.ok(!verifyMetadata([key], { ...signed, signature }));
  }
});
