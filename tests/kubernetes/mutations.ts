import assert from "node:assert/strict";
import { type Mutation, MUTATIONS } from "../faults/mutations.ts";
import { playMutations } from "../faults/planted_bugs.ts";
import { run } from "../support/process.ts";
import type { Stage } from "./stage.ts";

/** Where the test of the fault suite meets no backend, and one of the engine on Pods notices, too. */
const ON_PODS: Readonly<Record<string, Mutation["test"]>> = {
  "mutations: ack before the claim is sure": {
    file: "tests/integration/engine_restart_test.ts",
    name: "engine hands the task to the same gate when its answer was lost over a crash",
  },
};

/** Bugs that somebody might write into this backend. */
export const POD_MUTATIONS: readonly Mutation[] = [
  {
    name: "mutations: a Pod is deleted by its name alone",
    file: "clients/kubernetes/executor_cluster.ts",
    before: "        preconditions: { uid },\n",
    after: "",
    test: {
      file: "clients/kubernetes/executor_cluster_test.ts",
      name: "deletePod() sends UID and grace period in the body alone",
    },
  },
  {
    name: "mutations: an executor found under the name is taken over unsigned",
    file: "controller/create_worker.ts",
    before: "return await ownership.verify(executor.name, executor.metadata, proof.nonce);",
    after: `return proof.nonce !== "";`,
    test: {
      file: "tests/integration/engine_backend_test.ts",
      name: "engine never adopts an object in the way that is not its own",
    },
  },
  {
    name: "mutations: identity bound to another Pod of that name",
    file: "backends/pod/pod_backend.ts",
    before: "pod.uid !== executor.uid || pod.deletion !== null",
    after: "pod.deletion !== null",
    test: {
      file: "tests/contract/backend_pod_fake_test.ts",
      name: "bindIdentity() refuses an executor that is gone, also when the name is taken again",
    },
  },
  {
    name: "mutations: the entry of an earlier Pod is left as it is",
    file: "backends/pod/identity.ts",
    before: "sorted(found.selectors) === sorted(wanted.selectors);",
    after: "sorted(found.selectors) !== sorted([]);",
    test: {
      file: "backends/pod/pod_backend_identity_test.ts",
      name: "bindIdentity() replaces the entry of an earlier Pod of that name",
    },
  },
  {
    name: "mutations: the entry is left behind",
    file: "backends/pod/pod_backend.ts",
    before: "        await identity.unbind(executor, options);\n",
    after: "",
    test: {
      file: "backends/pod/pod_backend_test.ts",
      name: "delete() goes on to the identity entry when the Pod is gone already",
    },
  },
  {
    name: "mutations: another Pod's entry is deleted with an old one",
    file: "backends/pod/identity.ts",
    before: "      if (podUidOf(found) !== uid) return;\n",
    after: "",
    test: {
      file: "tests/contract/backend_pod_fake_test.ts",
      name: "delete() leaves an executor of another uid alone, with its identity",
    },
  },
  {
    name: "mutations: the entry of a live Pod is swept",
    file: "backends/pod/identity.ts",
    before: "        if (pod !== undefined && pod.uid === uid) continue;\n",
    after: "",
    test: {
      file: "backends/pod/pod_backend_test.ts",
      name: "list() keeps the entry of a Pod that has lost our label",
    },
  },
  {
    name: "mutations: another instance's entries are swept",
    file: "backends/pod/identity.ts",
    before: "list: (call) => cluster.listEntries(mine, call),",
    after: "list: (call) => cluster.listEntries({}, call),",
    test: {
      file: "backends/pod/pod_backend_test.ts",
      name: "list() deletes our entries whose Pods are gone, and nobody else's",
    },
  },
  {
    name: "mutations: a lost label is told as a deletion",
    file: "backends/pod/pod_backend.ts",
    before: "if (known.get(name) !== uid || await livesOn(change.pod, options)) break;",
    after: "if (known.get(name) !== uid) break;",
    test: {
      file: "backends/pod/pod_backend_test.ts",
      name: "watch() does not tell of a deletion when a Pod has only lost our label",
    },
  },
  {
    name: "mutations: doubt about a new Pod is taken for a refusal",
    file: "backends/pod/errors.ts",
    before: `unknown_outcome: "unknown_outcome",`,
    after: `unknown_outcome: "refused",`,
    test: {
      file: "tests/contract/backend_pod_fake_test.ts",
      name: "create() whose answer is lost has made an executor that can be found",
    },
  },
];

/** Every test with an engine in it has the Pod backend, on a cluster in memory. */
const ON_CLUSTER = { TEST_POD_BACKEND: "cluster" };
const ROOT = new URL("../../", import.meta.url).pathname;
/** Fewer are not those that are meant. */
const LEAST_TESTS = 100;

async function engineTests(): Promise<string[]> {
  const files = ["controller/recovery_test.ts", "controller/inquiry_test.ts"];
  for await (const { name } of Deno.readDir(`${ROOT}tests/integration`)) {
    if (/^engine_.*_test\.ts$/.test(name)) files.push(`tests/integration/${name}`);
  }
  return files.map((file) => ROOT + file);
}

/** The ten bugs of the fault suite with Pods as executors, and those of this backend. */
export async function checkMutations({ report }: Pick<Stage, "report">): Promise<void> {
  const ten = MUTATIONS.map((mutation) => ({
    ...mutation,
    test: ON_PODS[mutation.name] ?? mutation.test,
  }));
  await report.check("the tests of the engine pass with Pods as executors", async () => {
    const { stdout } = await run(Deno.execPath(), [
      "test",
      "-A",
      "--no-check",
      ...await engineTests(),
    ], { env: { NO_COLOR: "1", ...ON_CLUSTER } });
    const [, passed = "0"] = /(\d+) passed \| 0 failed/.exec(stdout) ?? [];
    assert.ok(Number(passed) >= LEAST_TESTS, stdout);
    return `${passed} passed`;
  });
  await playMutations([...ten, ...POD_MUTATIONS], report, ON_CLUSTER);
}
