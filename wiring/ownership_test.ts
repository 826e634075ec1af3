import assert from "node:assert/strict";
import type { Executor } from "../controller/backend.ts";
import {
  assignmentIdOf,
  type ExecutorName,
  executorName,
  instanceOf,
  parseTaskId,
} from "../controller/model/ids.ts";
import { Secret } from "../lib/secret.ts";
import { createOwnership } from "./ownership.ts";

const OLD = new Secret("old-key-".repeat(5));
const NEW = new Secret("new-key-".repeat(5));

Deno.test("verify() takes executors that any current key has signed, and none of a key that is gone", async () => {
  const instance = await instanceOf("uuid", "namespace");
  const taskId = parseTaskId("7");
  assert.ok(taskId !== undefined);
  const id = assignmentIdOf(taskId);
  const info = {
    id,
    taskId,
    backend: "pod",
    identity: { spiffeId: "spiffe://test.example/ci/acme/web/build", fork: false },
    repository: "acme/web",
    job: "build",
    runId: null,
    giteaUrl: null,
    serverUrl: null,
  } as const;
  const name = executorName(instance, id);
  const of = (...keys: Secret[]) =>
    createOwnership({ keys, prefix: "ci.test.example", instance, trustDomain: "test.example" });
  const signed = await of(OLD).compose(name, info, "nonce");
  assert.equal(await of(NEW, OLD).verify(name, signed, "nonce"), true);
  assert.equal(await of(NEW).verify(name, signed, "nonce"), false);
  const renewed = await of(NEW, OLD).compose(name, info, "nonce");
  assert.equal(await of(OLD).verify(name, renewed, "nonce"), false, "the first key signs");
});

Deno.test("identify() says of an executor that cannot be read what its backend says", async () => {
  const instance = await instanceOf("uuid", "namespace");
  const { identify } = createOwnership({
    keys: [NEW],
    prefix: "ci.test.example",
    instance,
    trustDomain: "test.example",
  });
  const detail = "sandbox annotation metadata chunks are incomplete";
  const of = (owner: string, readable: boolean): Executor => ({
    ...{ name: "sandbox-1" as ExecutorName, uid: "1", phase: "Running", createdAt: 0, node: null },
    metadata: { labels: { "ci.test.example/instance": owner }, annotations: {} },
    ...{ identityTarget: "1", terminating: false, ended: null, terminal: false },
    waiting: readable ? null : { code: "unreadable", detail },
  });
  assert.deepEqual(identify(of(instance, false)), { kind: "unknown", why: detail });
  const another = identify(of("another", false));
  assert.equal(another.kind, "foreign", "whose it is can be read");
  const readable = identify(of(instance, true));
  assert.ok(readable.kind === "unknown" && readable.why !== detail);
});
