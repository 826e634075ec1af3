import assert from "node:assert/strict";
import type { Component } from "../controller/config/config.ts";
import { missingParts } from "./missing_parts.ts";

const PODS = new Set<Component>(["scheduler", "pod-worker"]);
const ALL = new Set<Component>([...PODS, "vm-worker"]);

Deno.test("missingParts() takes what this version has", () => {
  assert.deepEqual(missingParts({ executors: "process", components: ALL }), []);
  assert.deepEqual(missingParts({ executors: "real", components: PODS }), []);
});

Deno.test("missingParts() refuses sandboxes and says how to run without them", () => {
  const [fault, ...more] = missingParts({ executors: "real", components: ALL });
  assert.equal(fault?.variable, "COMPONENTS");
  assert.equal(fault?.given, "scheduler,pod-worker,vm-worker");
  assert.match(fault?.allowed ?? "", /^scheduler,pod-worker/);
  assert.deepEqual(more, []);
});
