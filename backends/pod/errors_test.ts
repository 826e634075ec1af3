import assert from "node:assert/strict";
import { BackendError, type BackendErrorCode } from "../../controller/backend.ts";
import { ClusterError, type ClusterErrorCode } from "./cluster.ts";
import { toBackendError } from "./errors.ts";

const table: readonly (readonly [ClusterErrorCode, string, BackendErrorCode, string])[] = [
  [
    "forbidden",
    'the API server answered 403 Forbidden: pods "ci-1" is forbidden: exceeded quota: compute, ' +
    "requested: pods=1,requests.cpu=2, used: pods=4,requests.cpu=8, limited: pods=4,requests.cpu=9",
    "quota",
    'quota "compute" is used up: requested pods=1,requests.cpu=2, used pods=4,requests.cpu=8 of ' +
    "pods=4,requests.cpu=9",
  ],
  ["forbidden", "exceeded quota: object-counts", "quota", 'quota "object-counts" is used up'],
  [
    "forbidden",
    'pods "ci-1" is forbidden: failed quota: compute: must specify limits.cpu for: executor',
    "refused",
    'pods "ci-1" is forbidden: failed quota: compute: must specify limits.cpu for: executor',
  ],
  [
    "forbidden",
    'pods "ci-1" is forbidden: violates PodSecurity "restricted:latest": privileged',
    "refused",
    'pods "ci-1" is forbidden: violates PodSecurity "restricted:latest": privileged',
  ],
  ["not_found", 'namespaces "x" not found', "refused", 'namespaces "x" not found'],
  ["already_exists", 'pods "x" already exists', "conflict", 'pods "x" already exists'],
  ["conflict", "the object has been modified", "unavailable", "the object has been modified"],
  ["invalid", 'unknown field "spec.foo"', "invalid", 'unknown field "spec.foo"'],
  ["throttled", "too many requests", "unavailable", "too many requests"],
  ["unauthorized", "Unauthorized", "refused", "Unauthorized"],
  ["unknown_outcome", "connection\nlost", "unknown_outcome", "connection lost"],
];
for (const [code, message, expected, words] of table) {
  Deno.test(`toBackendError() makes ${expected} of ${code}: ${message.slice(0, 40)}`, () => {
    const cause = new ClusterError(code, message);
    const error = toBackendError('Make executor "x"', cause);
    assert.equal(error.code, expected);
    assert.equal(error.message, `Make executor "x": ${words}`);
    assert.equal(error.retryable, expected !== "invalid");
    assert.equal(error.cause, cause);
  });
}

Deno.test("toBackendError() passes its own kind on and doubts all others", () => {
  const own = new BackendError("conflict", "Make it: taken");
  assert.equal(toBackendError("x", own), own);
  assert.equal(toBackendError("x", new TypeError("odd")).code, "unavailable");
  assert.equal(toBackendError("x", "odd").message, "x: odd");
});
