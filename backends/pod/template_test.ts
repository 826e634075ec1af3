import assert from "node:assert/strict";
import { NO_TEMPLATE, parsePodTemplate, PodTemplateError } from "./template.ts";

const options = { metadataPrefix: "ci.example.org" };
const read = (text: string) => parsePodTemplate(text, options);

Deno.test("parsePodTemplate() reads YAML and JSON, whole Pods and parts", () => {
  const wanted = { labels: { a: "b" }, annotations: {}, spec: { nodeSelector: { c: "d" } } };
  assert.deepEqual(
    read(
      '{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"}},"spec":{"nodeSelector":{"c":"d"}}}',
    ),
    wanted,
  );
  assert.deepEqual(read("metadata: {labels: {a: b}}\nspec: {nodeSelector: {c: d}}\n"), wanted);
  assert.deepEqual(read(""), NO_TEMPLATE);
  assert.deepEqual(read("# nothing\n"), NO_TEMPLATE);
});

const faults: readonly (readonly [string, RegExp])[] = [
  ["[]", /it is no object; allowed: a Pod/],
  ["spec: {a: 1, a: 2}", /Cannot read YAML/],
  ["resources: {}", /"resources" is no field of a Pod template/],
  ["kind: Deployment", /kind is "Deployment"; allowed: Pod/],
  ["apiVersion: v2", /apiVersion is "v2"; allowed: v1/],
  ["metadata: {finalizers: [x]}", /metadata\.finalizers would keep others/],
  ["metadata: {ownerReferences: []}", /metadata\.ownerReferences would/],
  [
    'metadata: {labels: {ci.example.org\/terminal: "true"}}',
    /keys below "ci.example.org\/" are ours/,
  ],
  [
    "metadata: {annotations: {ci.example.org\/signature: x}}",
    /keys below "ci.example.org\/" are ours/,
  ],
  ["metadata: {labels: {a: true}}", /metadata\.labels has "a" with true; allowed: a text/],
  ["metadata: {labels: [a]}", /metadata\.labels is \["a"\]; allowed: an object/],
  ["spec: x", /spec is "x"; allowed: an object/],
  ["spec: {hostUsers: false}", /spec\.hostUsers is false; .*user id on the host/],
  ["spec: {ephemeralContainers: []}", /spec\.ephemeralContainers cannot be set/],
  ["spec: {terminationGracePeriodSeconds: 5}", /Seconds is 5; allowed: whole seconds from 30/],
  ['spec: {terminationGracePeriodSeconds: "60"}', /Seconds is "60"; allowed/],
  ["spec: {containers: {name: x}}", /spec\.containers is .*; allowed: a list/],
  ["spec: {containers: [{image: x}]}", /spec\.containers has an entry without a name/],
  [
    "spec: {containers: [{name: x}, {name: x}]}",
    /spec\.containers has "x", a name that is used before/,
  ],
  ["spec: {initContainers: [{name: executor}]}", /initContainers has "executor": that is the name/],
  ["spec: {volumes: [{name: x}, {name: x}]}", /spec\.volumes has "x" twice/],
  ["spec: {containers: [{name: executor, env: x}]}", /containers\[executor\]\.env is "x"; allowed/],
  [
    "spec: {containers: [{name: executor, volumeMounts: [{name: x, mountPath: y}]}]}",
    /volumeMounts has a mountPath "y"; allowed: an absolute path/,
  ],
];
for (const [text, message] of faults) {
  Deno.test(`parsePodTemplate() refuses ${text}`, () => {
    assert.throws(() => read(text), (error) => {
      assert.ok(error instanceof PodTemplateError);
      assert.match(error.message, message);
      assert.match(error.message, /^Read the Pod template: /);
      return true;
    });
  });
}

Deno.test("parsePodTemplate() reports all faults together", () => {
  assert.throws(() => read("kind: Job\nspec: {hostUsers: false, volumes: 7}\n"), (error) => {
    assert.ok(error instanceof PodTemplateError);
    assert.equal(error.faults.length, 3);
    return true;
  });
});
