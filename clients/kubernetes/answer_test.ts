import assert from "node:assert/strict";
import { failureOfAnswer, failureOfTransport, isCertificateFailure } from "./answer.ts";

const answer = (status: number, text: string, headers: Record<string, string> = {}) =>
  failureOfAnswer({ status, text, headers: new Headers(headers) });

Deno.test("failureOfAnswer() takes reason and message from a Status", () => {
  const body = {
    code: 422,
    reason: "Invalid",
    message: 'Pod "x" is\n invalid',
    details: { retryAfterSeconds: 2 },
  };
  assert.deepEqual(answer(422, JSON.stringify(body)), {
    status: 422,
    reason: "Invalid",
    detail: 'Pod "x" is  invalid',
    retryAfterMs: 2_000,
  });
});

Deno.test("failureOfAnswer() names what comes from a proxy by its number", () => {
  assert.equal(answer(503, "<html>").reason, "ServiceUnavailable");
  assert.equal(answer(418, "").reason, "Unknown");
  assert.equal(answer(418, "").detail, "no reason given");
  assert.equal(answer(404, "null").reason, "NotFound");
  assert.equal(answer(409, '{"reason":7,"message":[]}').reason, "Conflict");
  assert.equal(answer(500, "x".repeat(10_000)).detail.length, 500);
});

Deno.test("failureOfAnswer() bounds Retry-After, and takes only seconds", () => {
  const after = (value: string) => answer(429, "", { "retry-after": value }).retryAfterMs;
  assert.deepEqual(
    ["1", " 30 ", "3600", "0", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT"].map(after),
    [
      1_000,
      30_000,
      60_000,
      null,
      null,
      null,
      null,
    ],
  );
});

Deno.test("failureOfTransport() finds the state in the chain of causes", () => {
  const state = (...texts: string[]) =>
    failureOfTransport(texts.reduceRight<unknown>(
      (cause, text) => new Error(text, cause === undefined ? {} : { cause }),
      undefined,
    )).detail;
  assert.equal(
    state("error sending request", "tcp connect error: Connection refused"),
    "connection refused",
  );
  assert.equal(state("x", "dns error: failed to lookup"), "the host name does not resolve");
  assert.equal(state("error reading a body from connection"), "the answer broke off");
  assert.match(
    state("x", "invalid peer certificate: UnknownIssuer"),
    /^TLS failed \(x: invalid peer/,
  );
  assert.match(state("something else"), /^no answer \(something else\)$/);
  assert.equal(failureOfTransport("text").reason, "Unreachable");
});

Deno.test("isCertificateFailure() is true only where a new CA may help", () => {
  assert.ok(
    isCertificateFailure(new TypeError("x", { cause: new Error("UnknownIssuer certificate") })),
  );
  assert.equal(isCertificateFailure(new TypeError("connection reset")), false);
});
