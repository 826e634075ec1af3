import assert from "node:assert/strict";
import { assignmentIdOf, executorName, instanceOf, parseTaskId } from "../controller/model/ids.ts";
import { spiffeIdOf } from "../controller/model/identity.ts";
import { LEASE } from "../tests/support/lease_cluster.ts";
import {
  at,
  listAt,
  type Manifest,
  readManifest,
  readManifests,
} from "../tests/support/kube_manifests.ts";

const FILES = ["admission-policy.yaml", "admission-policy-own.yaml"];
const OWN = "admission-policy-own.yaml";
const POLICY = "ValidatingAdmissionPolicy";

async function policies(): Promise<Manifest[]> {
  return (await Promise.all(FILES.map(readManifests))).flat();
}

async function policy(name: string): Promise<{ readonly text: string; readonly it: Manifest }> {
  const it = await readManifest(OWN, { kind: POLICY, name: `gitea-dynamic-runner-${name}` });
  return { it, text: JSON.stringify(it.spec).replaceAll("\\", "") };
}

Deno.test("every admission policy refuses when it cannot be evaluated, and is bound to deny", async () => {
  const all = await policies();
  const names = all.filter((one) => one.kind === POLICY).map((one) => {
    assert.equal(at(one, "spec", "failurePolicy"), "Fail");
    assert.ok(listAt(one, "spec", "validations").length > 0);
    return at(one, "metadata", "name");
  });
  const bound = all.filter((one) => one.kind === `${POLICY}Binding`).map((one) => {
    assert.deepEqual(listAt(one, "spec", "validationActions"), ["Deny", "Audit"]);
    assert.equal(at(one, "metadata", "name"), at(one, "spec", "policyName"));
    return at(one, "spec", "policyName");
  });
  assert.equal(names.length, 5);
  assert.deepEqual(bound.sort(), names.sort());
});

Deno.test("the policies know the names that the controller uses", async () => {
  const account = "system:serviceaccount:gitea-dynamic-runner:controller";
  for (const name of ["identities", "own-pods"]) {
    const condition = at((await policy(name)).it, "spec", "matchConditions", 0, "expression");
    assert.equal(condition, `request.userInfo.username == "${account}"`);
  }
  const lease = await policy("lease");
  assert.ok(lease.text.includes(`"${LEASE.name}"`));
  assert.ok(lease.text.includes(`.startsWith("${account.replace(/[^:]*$/, "")}")`));
  const namespace = at(
    ...[lease.it, "spec", "matchConstraints", "namespaceSelector", "matchLabels"] as const,
    "kubernetes.io/metadata.name",
  );
  assert.equal(namespace, LEASE.namespace);
});

Deno.test("the policy of entries lets the names and identities of executors through, and no others", async () => {
  const { text } = await policy("identities");
  const [names, identities] = [...text.matchAll(/\.matches\("([^"]+)"\)/g)]
    .map(([, pattern = ""]) => new RegExp(pattern));
  assert.ok(names !== undefined && identities !== undefined);
  const instance = await instanceOf(crypto.randomUUID(), LEASE.namespace);
  for (const id of [1n, 2n ** 63n - 1n]) {
    const task = parseTaskId(id) ?? assert.fail();
    assert.match(executorName(instance, assignmentIdOf(task)), names);
  }
  for (const name of ["gitea-dynamic-runner-facade", "ci-0123456789", "ci-0123456789-1x"]) {
    assert.doesNotMatch(name, names);
  }
  for (const fork of [false, true]) {
    const derived = spiffeIdOf({ repository: "owner/name", job: "build", fork }, "example.org");
    assert.ok(derived.kind === "derived");
    assert.match(derived.identity.spiffeId, identities);
  }
  for (const path of ["any/service", "cicd/x", "ci", "x/ci/y", "gitea-dynamic-runner/facade"]) {
    assert.doesNotMatch(`spiffe://example.org/${path}`, identities);
  }
});
