import assert from "node:assert/strict";
import { parseYaml, runsOn } from "../../controller/model/workflow.ts";
import { parseJobFile } from "./job_file.ts";

const shipped = await Deno.readTextFile(new URL("./jobs.yaml", import.meta.url));

Deno.test("parseJobFile() gives eight jobs over pod and vm when it reads the shipped file", () => {
  const jobs = parseJobFile(shipped).flatMap((run) => run.jobs);
  assert.equal(jobs.length, 8);
  for (const backend of ["pod", "vm"]) {
    assert(jobs.some(({ runsOn }) => runsOn.includes(backend)), `no job for ${backend}`);
  }
  for (const { job, payload, runsOn: labels } of jobs) {
    assert.deepEqual(runsOn(new TextEncoder().encode(payload), job), labels);
    assert.doesNotMatch(payload, /uses:|\$\{\{/);
  }
});

Deno.test("parseJobFile() makes one job per cell when there is a matrix", () => {
  const [run] = parseJobFile(`
- repository: a/b
  file: w.yaml
  workflow:
    on: push
    jobs:
      cell:
        runs-on: [self-hosted, "\${{ matrix.where }}"]
        strategy: {matrix: {where: [pod, vm], n: [1, 2]}}
        steps:
          - run: echo \${{ matrix.where }} \${{matrix.n}} \${{ matrix.other }}
`);
  assert.deepEqual(run?.jobs.map(({ runsOn, title }) => [title, runsOn[1]]), [
    ["cell (pod, 1)", "pod"],
    ["cell (pod, 2)", "pod"],
    ["cell (vm, 1)", "vm"],
    ["cell (vm, 2)", "vm"],
  ]);
  const text = JSON.stringify(parseYaml(run?.jobs[3]?.payload ?? ""));
  assert.match(text, /"run":"echo vm 2 \$\{\{ matrix\.other \}\}"/);
  assert.match(text, /"matrix":\{"where":\["vm"\],"n":\["2"\]\}/);
});

Deno.test("parseJobFile() names the place when something is wrong", () => {
  assert.throws(() => parseJobFile("a: 1"), /not a list/);
  assert.throws(() => parseJobFile("- {repository: x, file: y}"), /entry 1 needs "repository/);
  assert.throws(
    () => parseJobFile("- {repository: a/b, file: y, workflow: {on: push, jobs: {j: {}}}}"),
    /entry 1, jobs, j needs "runs-on"/,
  );
});
