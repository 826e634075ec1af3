import assert from "node:assert/strict";
import { parseConfig } from "../controller/config/parse.ts";
import { KNOWN_NAMES } from "../controller/config/variables.ts";
import { isObject } from "../lib/json_object.ts";
import {
  at,
  listAt,
  type Manifest,
  MANIFESTS,
  readManifest,
  readManifests,
} from "../tests/support/kube_manifests.ts";

const EXAMPLES = [
  "admin-service",
  "controller-identity",
  "microvms",
  "nats",
  "node-uid",
  "quota",
  "secret",
].map((name) => `examples/${name}.yaml`);

async function resources(): Promise<string[]> {
  const [kustomization] = await readManifests("kustomization.yaml");
  return listAt(kustomization, "resources").map(String);
}

/** What the ConfigMap `controller` is made of. */
async function controllerConfig(): Promise<Record<string, string>> {
  const text = await Deno.readTextFile(`${MANIFESTS}config.env`);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => {
    const [, name = "", value = ""] = /^([A-Z_]+)=(\S.*)$/.exec(line) ?? [];
    assert.notEqual(name, "", line);
    return [name, value];
  }));
}

/** Every Pod spec of the manifests, with where it stands. */
async function podSpecs(): Promise<{ readonly name: string; readonly spec: unknown }[]> {
  const found: { readonly name: string; readonly spec: unknown }[] = [];
  for (const file of [...await resources(), ...EXAMPLES]) {
    for (const one of await readManifests(file)) {
      const spec = at(one, "spec", "template", "spec");
      if (spec !== undefined) found.push({ name: `${file}: ${at(one, "metadata", "name")}`, spec });
    }
  }
  return found;
}

Deno.test("kustomization.yaml names every manifest but the examples", async () => {
  const files: string[] = [];
  for await (const { name, isFile } of Deno.readDir(MANIFESTS)) if (isFile) files.push(name);
  assert.deepEqual(
    [...await resources(), "config.env"].sort(),
    files.filter((name) => name !== "kustomization.yaml").sort(),
  );
  const examples: string[] = [];
  for await (const { name } of Deno.readDir(`${MANIFESTS}examples`)) {
    examples.push(`examples/${name}`);
  }
  assert.deepEqual(examples.sort(), [...EXAMPLES].sort());
});

Deno.test("the controller's ConfigMap has a name of its content, which the Deployment follows", async () => {
  const [kustomization] = await readManifests("kustomization.yaml");
  const deployment = await readManifest("deployment.yaml", {
    kind: "Deployment",
    name: "controller",
  });
  const container = at(deployment, "spec", "template", "spec", "containers", 0);
  const name = at(container, "envFrom", 0, "configMapRef", "name");
  assert.deepEqual(listAt(kustomization, "configMapGenerator"), [
    { name, namespace: at(deployment, "metadata", "namespace"), envs: ["config.env"] },
  ]);
  assert.equal(at(kustomization, "generatorOptions"), undefined);
});

Deno.test("Pods of the manifests keep to Pod Security level restricted", async () => {
  const specs = await podSpecs();
  assert.equal(specs.length, 2);
  for (const { name, spec } of specs) {
    assert.equal(at(spec, "securityContext", "runAsNonRoot"), true, name);
    assert.equal(at(spec, "securityContext", "seccompProfile", "type"), "RuntimeDefault", name);
    for (const container of listAt(spec, "containers")) {
      const context = at(container, "securityContext");
      assert.equal(at(context, "allowPrivilegeEscalation"), false, name);
      assert.equal(at(context, "readOnlyRootFilesystem"), true, name);
      assert.deepEqual(at(context, "capabilities", "drop"), ["ALL"], name);
      assert.match(String(at(container, "image")), /:\d+\.\d+\.\d+$/, name);
      assert.ok(at(container, "resources", "limits", "memory"), name);
    }
  }
  for (const namespace of await readManifests("namespaces.yaml")) {
    const labels = at(namespace, "metadata", "labels");
    assert.equal(at(labels, "pod-security.kubernetes.io/enforce"), "restricted");
  }
});

Deno.test("the controller's variables are known ones, and a whole configuration", async () => {
  const secret = await readManifest("examples/secret.yaml", { kind: "Secret", name: "controller" });
  const deployment = await readManifest("deployment.yaml", {
    kind: "Deployment",
    name: "controller",
  });
  const env = await controllerConfig();
  for (const one of listAt(deployment, "spec", "template", "spec", "containers", 0, "env")) {
    const value = at(one, "value");
    env[String(at(one, "name"))] = value === undefined ? "controller-0" : String(value);
  }
  assert.deepEqual(Object.keys(env).filter((name) => !KNOWN_NAMES.includes(name)), []);
  // What Kubernetes itself gives every container.
  const cluster = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };
  const parsed = parseConfig({ ...env, ...cluster }, {
    hostname: "node",
    isRoot: false,
    readFile(path) {
      const key = path.slice("/secrets/".length);
      assert.ok(path.startsWith("/secrets/"), path);
      assert.notEqual(at(secret, "stringData", key), undefined, `${key} in the example`);
      return key === "GITEA_RUNNER_UUID" ? crypto.randomUUID() : "x".repeat(40);
    },
  });
  assert.deepEqual(parsed.kind === "faults" ? parsed.faults : [], []);
  assert.deepEqual(parsed.warnings, []);
  assert.ok(parsed.kind === "ok");
  assert.equal(parsed.config.executors, "real");
  assert.equal(parsed.config.leaderElection, "kubernetes");
  // Names in the manifests cannot follow the variable.
  const { metadataPrefix: prefix } = parsed.config;
  const facade = await readManifest("services.yaml", { kind: "Service", name: "facade" });
  assert.equal(at(facade, "spec", "selector", `${prefix}/leader`), "true");
  const admission = await Deno.readTextFile(`${MANIFESTS}admission-policy.yaml`);
  const guarded = [...admission.matchAll(/startsWith\("([^"]*)"\)/g)].map(([, key]) => key);
  assert.deepEqual(guarded, [`${prefix}/`, `${prefix}/`, `${prefix}/`, `${prefix}/`]);
});

Deno.test("the command of docs/install.md gives every manifest another prefix", async () => {
  const install = await Deno.readTextFile(new URL("../docs/install.md", import.meta.url));
  const [, from = "", to = ""] = /sed 's#([^#]+)#([^#]+)#g'/.exec(install) ?? [];
  assert.equal(to, "ci.example.org/");
  let changed = 0;
  for await (const { name } of Deno.readDir(MANIFESTS)) {
    if (!name.endsWith(".yaml")) continue;
    const before = await Deno.readTextFile(MANIFESTS + name);
    const after: string = before.replaceAll(new RegExp(from, "g"), to);
    assert.ok(!after.includes("ci.ddupan.top"), name);
    if (after !== before) changed++;
  }
  assert.equal(changed, 3, "the facade's Service and the admission policies");
});

Deno.test("the controller's identity is the one that its configuration names", async () => {
  const config = await controllerConfig();
  const [entry] = await readManifests("examples/controller-identity.yaml");
  assert.equal(at(entry, "spec", "spiffeID"), config.RUNNER_FACADE_SPIFFE_ID);
  assert.equal(at(entry, "spec", "parentID"), config.SPIRE_AGENT_ID);
  assert.equal(at(entry, "spec", "className"), config.SPIRE_CLASS);
});

Deno.test("images of the manifests have the version of deno.json", async () => {
  const { version } = JSON.parse(
    await Deno.readTextFile(new URL("../deno.json", import.meta.url)),
  ) as { version: string };
  const deployment = await readManifest("deployment.yaml", {
    kind: "Deployment",
    name: "controller",
  });
  const config = await controllerConfig();
  const image = at(deployment, "spec", "template", "spec", "containers", 0, "image");
  assert.equal(image, `gitea-dynamic-runner:${version}`);
  assert.equal(config.POD_EXECUTOR_IMAGE, `gitea-dynamic-runner-executor:${version}`);
});

Deno.test("roles name what they allow, and executors may do nothing", async () => {
  const rules: Manifest[] = [];
  for (const file of ["rbac.yaml", "examples/node-uid.yaml"]) {
    for (const one of await readManifests(file)) {
      rules.push(...listAt(one, "rules").filter(isObject));
      for (const subject of listAt(one, "subjects")) {
        assert.equal(at(subject, "name"), "controller");
        assert.equal(at(subject, "namespace"), "gitea-dynamic-runner");
      }
    }
  }
  assert.ok(rules.length > 4);
  const everything = rules.flatMap((rule) =>
    ["apiGroups", "resources", "verbs"].flatMap((key) => listAt(rule, key))
  );
  assert.ok(!everything.includes("*"));
  for (const never of ["secrets", "pods/exec", "pods/attach", "deletecollection"]) {
    assert.ok(!everything.includes(never), never);
  }
  const account = await readManifest("service-accounts.yaml", {
    kind: "ServiceAccount",
    name: "gitea-task-executor",
  });
  assert.equal(at(account, "automountServiceAccountToken"), false);
});

Deno.test("the shipped NATS syncs before it acknowledges, and asks who it is", async () => {
  const config = await readManifest("examples/nats.yaml", { kind: "ConfigMap", name: "nats" });
  const text = String(at(config, "data", "nats.conf"));
  assert.match(text, /^\s*sync_interval: always$/m);
  assert.match(text, /^\s*password: \$NATS_PASSWORD$/m);
});

Deno.test("Services and policies select the Pods of the Deployment", async () => {
  const deployment = await readManifest("deployment.yaml", {
    kind: "Deployment",
    name: "controller",
  });
  const labels = at(deployment, "spec", "template", "metadata", "labels");
  const leader = "ci.ddupan.top/leader";
  const facade = await readManifest("services.yaml", { kind: "Service", name: "facade" });
  assert.deepEqual(at(facade, "spec", "selector"), { ...labels as object, [leader]: "true" });
  const metrics = await readManifest("services.yaml", { kind: "Service", name: "metrics" });
  assert.deepEqual(at(metrics, "spec", "selector"), labels);
  const policy = await readManifest("network-policies.yaml", {
    kind: "NetworkPolicy",
    name: "controller",
  });
  assert.deepEqual(at(policy, "spec", "podSelector", "matchLabels"), labels);
});
