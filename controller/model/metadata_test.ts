import assert from "node:assert/strict";
import { sampleTask } from "../../tests/support/tasks.ts";
import { placeTask } from "./assignment.ts";
import { type Instance, parseAssignmentId } from "./ids.ts";
import { buildMetadata, type ExecutorMetadata, parseMetadata, withSignature } from "./metadata.ts";

const P = "ci.ddupan.top";
const TD = "example.org";
const instance = "0011223344" as Instance;
const fork = { event: { pull_request: {} } };

function build(context = {}): ExecutorMetadata {
  const placed = placeTask(sampleTask({ context }), { trustDomain: TD, defaultBackend: null });
  assert.ok(placed.kind === "placed");
  return buildMetadata(placed.info, { prefix: P, instance });
}

Deno.test("buildMetadata() writes every label and annotation", () => {
  assert.deepEqual(build(), {
    labels: {
      [`${P}/runner`]: "true",
      [`${P}/assignment-id`]: "gitea-task-11",
      [`${P}/task-id`]: "11",
      [`${P}/backend`]: "pod",
      [`${P}/instance`]: "0011223344",
    },
    annotations: {
      [`${P}/repository`]: "peeradmin/demo",
      [`${P}/job-key`]: "second",
      [`${P}/spiffe-id`]: `spiffe://${TD}/ci/peeradmin/demo/second`,
      [`${P}/fork`]: "false",
    },
  });
});

Deno.test("parseMetadata() rebuilds a minimal assignment, fork flag included", () => {
  for (const context of [{}, fork, { repository: "Owner/Repo" }]) {
    const built = withSignature(build(context), { prefix: P, signature: "ab" });
    const parsed = parseMetadata(built, { prefix: P, trustDomain: TD });
    assert.ok(parsed.kind === "parsed");
    const placed = placeTask(sampleTask({ context }), { trustDomain: TD, defaultBackend: null });
    assert.ok(placed.kind === "placed");
    const { ref: _, ...kept } = placed.info;
    assert.deepEqual(parsed, {
      kind: "parsed",
      info: { ...kept, runId: null, giteaUrl: null, serverUrl: null },
      instance,
      terminal: false,
      signature: "ab",
    });
  }
});

Deno.test("parseMetadata() sees the terminal marker", () => {
  const { labels, annotations } = build();
  const marked = { labels: { ...labels, [`${P}/terminal`]: "true" }, annotations };
  const parsed = parseMetadata(marked, { prefix: P, trustDomain: TD });
  assert.ok(parsed.kind === "parsed" && parsed.terminal && parsed.signature === null);
});

const faults: [string, "labels" | "annotations", string | undefined, string][] = [
  ["task-id", "labels", undefined, "backend metadata has invalid task ID"],
  ["task-id", "labels", "0", "backend metadata has invalid task ID"],
  ["task-id", "labels", "1x", "backend metadata has invalid task ID"],
  ["task-id", "labels", "9223372036854775808", "backend metadata has invalid task ID"],
  ["backend", "labels", undefined, "backend metadata has invalid backend"],
  ["backend", "labels", "vm-dev", "backend metadata has invalid backend"],
  [
    "assignment-id",
    "labels",
    "gitea-task-12",
    "backend metadata assignment ID does not match task ID",
  ],
  ["assignment-id", "labels", undefined, "backend metadata assignment ID does not match task ID"],
  ["instance", "labels", undefined, "backend metadata has no instance"],
  ["fork", "annotations", "maybe", "backend metadata has invalid fork flag"],
  [
    "fork",
    "annotations",
    "true",
    "backend metadata SPIFFE ID does not match repository and job",
  ],
  [
    "spiffe-id",
    "annotations",
    undefined,
    "backend metadata SPIFFE ID does not match repository and job",
  ],
  [
    "spiffe-id",
    "annotations",
    "spiffe://other/ci/peeradmin/demo/second",
    "backend metadata SPIFFE ID does not match repository and job",
  ],
  [
    "repository",
    "annotations",
    undefined,
    `backend metadata has invalid identity: repository "" is not "owner/name"`,
  ],
];
for (const [key, where, value, detail] of faults) {
  Deno.test(`parseMetadata() refuses ${key} = ${value}`, () => {
    const metadata = build();
    const changed: Record<string, string> = { ...metadata[where] };
    if (value === undefined) delete changed[`${P}/${key}`];
    else changed[`${P}/${key}`] = value;
    const parsed = parseMetadata({ ...metadata, [where]: changed }, { prefix: P, trustDomain: TD });
    assert.deepEqual(parsed, { kind: "invalid", detail });
  });
}

Deno.test("parseMetadata() knows nothing under another prefix", () => {
  const parsed = parseMetadata(build(), { prefix: "other.example", trustDomain: TD });
  assert.equal(parsed.kind, "invalid");
  assert.ok(parseAssignmentId("gitea-task-11"));
});
