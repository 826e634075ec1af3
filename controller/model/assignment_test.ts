import assert from "node:assert/strict";
import type { JsonValue } from "../../proto/runtime.ts";
import { runtimeToken, sampleTask } from "../../tests/support/tasks.ts";
import { placeTask } from "./assignment.ts";
import type { BackendName } from "./ids.ts";

const options = { trustDomain: "example.org", defaultBackend: null };
const labelled = (labels: string) =>
  sampleTask({ workflow: `jobs:\n  second:\n    runs-on: ${labels}\n` });

Deno.test("placeTask() knows everything about a task of Gitea", () => {
  assert.deepEqual(placeTask(sampleTask(), options), {
    kind: "placed",
    info: {
      id: "gitea-task-11",
      taskId: "11",
      backend: "pod",
      identity: { spiffeId: "spiffe://example.org/ci/peeradmin/demo/second", fork: false },
      repository: "peeradmin/demo",
      job: "second",
      ref: "refs/heads/main",
      runId: "5",
      giteaUrl: "http://gitea.example.org/peeradmin/demo/actions/runs/5/jobs/9",
      serverUrl: "http://gitea.example.org",
    },
  });
});

const chosen: [string, BackendName | null, BackendName][] = [
  ["[self-hosted, pod]", null, "pod"],
  ["[self-hosted, vm]", null, "vm"],
  ["[self-hosted, vm-dev]", "pod", "vm"],
  ["[self-hosted, vm, vm-dev]", null, "vm"],
  ["[self-hosted, pod, linux]", null, "pod"],
  ["{ labels: [self-hosted, vm] }", null, "vm"],
  ["self-hosted", "vm", "vm"],
  ["[self-hosted, self-hosted]", "pod", "pod"],
];
for (const [labels, defaultBackend, backend] of chosen) {
  Deno.test(`placeTask() puts ${labels} on ${backend} when the default is ${defaultBackend}`, () => {
    const placed = placeTask(labelled(labels), { ...options, defaultBackend });
    assert.equal(placed.kind === "placed" && placed.info.backend, backend);
  });
}

const INSTEAD = `write "runs-on: [self-hosted, pod]" or "runs-on: [self-hosted, vm]" instead`;
const refused: [string, string][] = [
  ["pod", `task runs-on labels must include self-hosted: found "pod"; ${INSTEAD}`],
  [
    "[ubuntu-latest, x]",
    `task runs-on labels must include self-hosted: found "ubuntu-latest", "x"; ${INSTEAD}`,
  ],
  [
    "[self-hosted, pod, vm]",
    `task runs-on labels must select exactly one of pod or vm: found "self-hosted", "pod", "vm"; ${INSTEAD}`,
  ],
  [
    "[self-hosted, pod, vm-dev]",
    `task runs-on labels must select exactly one of pod or vm: found "self-hosted", "pod", "vm-dev"; ${INSTEAD}`,
  ],
  [
    "self-hosted",
    `task runs-on labels must select exactly one of pod or vm: found "self-hosted"; ${INSTEAD}`,
  ],
  [
    "[self-hosted, linux]",
    `task runs-on labels must select exactly one of pod or vm: found "self-hosted", "linux"; ${INSTEAD}`,
  ],
];
for (const [labels, detail] of refused) {
  Deno.test(`placeTask() refuses ${labels} for good`, () => {
    assert.deepEqual(placeTask(labelled(labels), options), {
      kind: "permanent",
      taskId: "11",
      detail,
    });
  });
}

Deno.test("placeTask() does not send other labels to the default backend", () => {
  const placed = placeTask(labelled("[self-hosted, linux]"), { ...options, defaultBackend: "pod" });
  assert.equal(placed.kind, "permanent");
});

Deno.test("placeTask() refuses what it cannot read, with the task's id", () => {
  const bad = [
    sampleTask({ workflow: "jobs: {" }),
    sampleTask({ workflow: "" }),
    sampleTask({ context: { repository: "a/b/c" } }),
    sampleTask({ context: { job: "build (1)" } }),
  ];
  for (const task of bad) {
    const placed = placeTask(task, options);
    assert.ok(placed.kind === "permanent" && placed.taskId === "11" && placed.detail !== "");
  }
  const unnamed = placeTask(sampleTask({ id: 0n }), options);
  assert.ok(unnamed.kind === "permanent" && unnamed.taskId === null);
});

const links: [string, Record<string, string>, string | null, string | null][] = [
  ["no token", { gitea_runtime_token: "" }, null, "http://gitea.example.org"],
  ["no JWT", { gitea_runtime_token: "a.!!.c" }, null, "http://gitea.example.org"],
  [
    "a token without job",
    { gitea_runtime_token: runtimeToken({}) },
    null,
    "http://gitea.example.org",
  ],
  [
    "a job that is a path",
    { gitea_runtime_token: runtimeToken({ JobID: "../1" }) },
    null,
    "http://gitea.example.org",
  ],
  ["a run that is a path", { run_id: "../1" }, null, "http://gitea.example.org"],
  [
    "a base path",
    { server_url: "https://example.org/gitea/" },
    "https://example.org/gitea/peeradmin/demo/actions/runs/5/jobs/9",
    "https://example.org/gitea",
  ],
  ["a script for URL", { server_url: "javascript:alert(1)" }, null, null],
  ["a password in the URL", { server_url: "https://a:b@example.org/" }, null, null],
  ["no URL", { server_url: "" }, null, null],
];
for (const [name, context, giteaUrl, serverUrl] of links) {
  Deno.test(`placeTask() makes only sound links from ${name}`, () => {
    const placed = placeTask(sampleTask({ context }), options);
    assert.ok(placed.kind === "placed");
    assert.deepEqual([placed.info.giteaUrl, placed.info.serverUrl], [giteaUrl, serverUrl]);
  });
}

Deno.test("placeTask() takes the ref as it is, at most as long as git has it, or none", () => {
  const refOf = (ref: JsonValue) => {
    const placed = placeTask(sampleTask({ context: { ref } }), options);
    return placed.kind === "placed" ? placed.info.ref : placed.detail;
  };
  const hostile = "refs/heads/<img/src=x/onerror=alert(1)>";
  assert.equal(refOf(hostile), hostile);
  assert.equal(refOf("r".repeat(1_000))?.length, 255);
  assert.equal(refOf(""), undefined);
  assert.equal(refOf({ ref: "x" }), undefined);
});
