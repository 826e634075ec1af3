import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import {
  jobOf,
  MAX_YAML_BYTES,
  parseYaml,
  runsOn,
  stringifyYaml,
  WorkflowError,
} from "./workflow.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const job = (runsOn: string) => bytes(`name: w\njobs:\n  build:\n    runs-on: ${runsOn}\n`);

const forms: [string, string, string[]][] = [
  ["a string", "self-hosted", ["self-hosted"]],
  ["a list", "[self-hosted, pod]", ["self-hosted", "pod"]],
  ["a list with a number", "[self-hosted, 22]", ["self-hosted", "22"]],
  ["an object with a label", "{ labels: self-hosted }", ["self-hosted"]],
  ["an object with labels", "{ labels: [self-hosted, vm] }", ["self-hosted", "vm"]],
  ["an object with labels and group", "{ labels: [a], group: big }", ["a", "big"]],
  ["an object with a group", "{ group: big }", ["big"]],
  ["quoted and padded texts", `[" self-hosted ", ""]`, ["self-hosted"]],
];
for (const [name, written, labels] of forms) {
  Deno.test(`runsOn() reads ${name}`, () => {
    assert.deepEqual(runsOn(job(written), "build"), labels);
  });
}

const refused: [string, Uint8Array, RegExp][] = [
  ["no text at all", bytes(""), /has no job "build"/],
  ["another job", bytes("jobs:\n  other:\n    runs-on: pod\n"), /has no job "build"/],
  ["jobs that are a list", bytes("jobs: [build]"), /has no job "build"/],
  ["no runs-on", bytes("jobs:\n  build:\n    steps: []\n"), /names no label/],
  ["an empty list", job("[]"), /names no label/],
  ["an empty text", job(`""`), /names no label/],
  ["labels inside labels", job("{ labels: { labels: pod } }"), /names no label/],
  ["a list in a list", job("[[pod]]"), /is not a text/],
  ["a label that is too long", job("x".repeat(257)), /more than 256 characters/],
  ["too many labels", job(`[${"a,".repeat(65)}]`), /more than 64 labels/],
  ["broken YAML", bytes("jobs: {"), /Cannot read YAML/],
  ["endless nesting", bytes("[".repeat(20_000)), /Cannot read YAML/],
  ["too many bytes", bytes("#".repeat(MAX_YAML_BYTES + 1)), /at most 524288/],
];
for (const [name, payload, message] of refused) {
  Deno.test(`runsOn() refuses ${name}`, () => {
    assert.throws(
      () => runsOn(payload, "build"),
      (error) => error instanceof WorkflowError && message.test(error.message),
    );
  });
}

Deno.test("runsOn() refuses aliases that multiply", () => {
  const lines = ["a: &a [x,x,x,x,x,x,x,x,x]"];
  for (let i = 1; i < 9; i++) {
    const [name, before] = ["abcdefghi".charAt(i), "abcdefghi".charAt(i - 1)];
    lines.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(",")}]`);
  }
  const bomb = `${lines.join("\n")}\njobs:\n  build:\n    runs-on: *i\n`;
  assert.throws(() => runsOn(bytes(bomb), "build"), WorkflowError);
});

Deno.test("runsOn() does not take inherited properties for jobs", () => {
  for (const key of ["constructor", "__proto__", "toString"]) {
    assert.throws(() => runsOn(job("pod"), key), WorkflowError);
  }
});

Deno.test("parseYaml() reads what stringifyYaml() writes", () => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
    const json = JSON.parse(JSON.stringify(value));
    assert.deepEqual(parseYaml(stringifyYaml(json)), json);
  }));
});

Deno.test("parseYaml() refuses a key that is given twice", () => {
  assert.throws(() => parseYaml("a: 1\na: 2\n"), WorkflowError);
});

Deno.test("jobOf() reads a payload that it has seen before just as it reads a new one", () => {
  const payload = (label: string) =>
    new TextEncoder().encode(`jobs: {build: {runs-on: [self-hosted, ${label}]}}`);
  assert.deepEqual(runsOn(payload("pod"), "build"), ["self-hosted", "pod"]);
  assert.deepEqual(runsOn(payload("vm"), "build"), ["self-hosted", "vm"]);
  assert.deepEqual(runsOn(payload("pod"), "build"), ["self-hosted", "pod"]);
  assert.equal(jobOf(payload("pod"), "other"), undefined);
  for (let i = 0; i < 200; i++) runsOn(payload(`label-${i}`), "build");
  assert.deepEqual(runsOn(payload("pod"), "build"), ["self-hosted", "pod"]);
});
