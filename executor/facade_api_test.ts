import assert from "node:assert/strict";
import { createFakeClock } from "../lib/fake_clock.ts";
import { create } from "../proto/runtime.ts";
import { UpdateLogRequestSchema } from "../proto/gen/runner/v1/messages_pb.ts";
import { createFacadeApi } from "./facade_api.ts";
import { type FacadeAnswer, FacadeError } from "./facade_link.ts";

const { signal } = new AbortController();

function apiWith(answer: Partial<FacadeAnswer> & { readonly text?: string } | Error) {
  return createFacadeApi({
    post: () =>
      answer instanceof Error ? Promise.reject(answer) : Promise.resolve({
        status: 500,
        headers: {},
        body: new TextEncoder().encode(answer.text ?? ""),
        ...answer,
      }),
    suspect() {},
    [Symbol.dispose]() {},
  }, createFakeClock());
}

const connect = (status: number, code: string, headers = {}) => ({
  status,
  headers,
  text: JSON.stringify({ code, message: "m" }),
});

const cases: readonly [string, Parameters<typeof apiWith>[0], string][] = [
  ["no answer", new FacadeError("Call facade: no answer"), "later"],
  ["its own trouble", connect(503, "unavailable"), "later"],
  ["too many calls", connect(429, "resource_exhausted", { "retry-after": "1" }), "later"],
  ["a message that is too large", connect(429, "resource_exhausted"), "too_large"],
  ["a refusal", connect(403, "permission_denied"), "refused"],
  ["a proxy's refusal", { status: 403, text: "<html>" }, "refused"],
  ["a proxy's trouble", { status: 502, text: "<html>" }, "later"],
  ["bytes that are no answer", { status: 200, body: new Uint8Array([0xff]) }, "later"],
];

for (const [name, answer, kind] of cases) {
  Deno.test(`updateLog() takes ${name} for "${kind}"`, async () => {
    const sent = await apiWith(answer).updateLog(create(UpdateLogRequestSchema), { signal });
    assert.equal(sent.kind, kind);
  });
}

Deno.test("updateLog() tells a sealed log from other refusals", async () => {
  for (const [code, sealed] of [["already_exists", true], ["permission_denied", false]] as const) {
    const api = apiWith(connect(409, code));
    const sent = await api.updateLog(create(UpdateLogRequestSchema), { signal });
    assert.ok(sent.kind === "refused" && sent.sealed === sealed);
  }
});

Deno.test("heartbeat() rejects with the signal's reason when that aborts, and only then", async () => {
  const stop = new AbortController();
  stop.abort(new Error("stopped"));
  const api = apiWith(new FacadeError("Call facade: no answer"));
  const beat = { holdsTask: true, logOffset: 3 };
  await assert.rejects(api.heartbeat(beat, { signal: stop.signal }), /stopped/);
});
