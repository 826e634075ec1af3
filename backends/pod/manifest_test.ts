import assert from "node:assert/strict";
import { fc } from "../../tests/support/property.ts";
import { specOf } from "../../tests/contract/backend_suite.ts";
import { containerEnvironment, executorContainer } from "../../tests/support/executor_pod.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { checkPodSettings, podManifest, type PodSettings } from "./manifest.ts";
import { parsePodTemplate } from "./template.ts";
import { POD_SETTINGS } from "../../tests/support/pod_settings.ts";

const SPEC = specOf("1", "pod");
function made(template: string, settings: Partial<PodSettings> = {}, spec = SPEC) {
  const parsed = parsePodTemplate(template, { metadataPrefix: "ci.example.org" });
  const pod = podManifest(spec, { ...POD_SETTINGS, template: parsed, ...settings });
  return {
    pod,
    metadata: objectOrEmpty(pod.metadata),
    spec: objectOrEmpty(pod.spec),
    container: executorContainer(pod),
  };
}

const value = (environment: unknown, name: string) =>
  Array.isArray(environment) ? environment.filter((each) => each.name === name) : [];

Deno.test("podManifest() makes a restricted Pod without a template", () => {
  const { pod, container } = made("");
  const { env: _env, ...rest } = container;
  assert.deepEqual({ ...pod, spec: { ...objectOrEmpty(pod.spec), containers: [rest] } }, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: SPEC.name,
      labels: SPEC.metadata.labels,
      annotations: SPEC.metadata.annotations,
    },
    spec: {
      terminationGracePeriodSeconds: 120,
      enableServiceLinks: false,
      restartPolicy: "Never",
      serviceAccountName: "gitea-task-executor",
      automountServiceAccountToken: false,
      securityContext: {
        runAsGroup: 2000,
        seccompProfile: { type: "RuntimeDefault" },
        runAsNonRoot: true,
        runAsUser: 2000,
      },
      volumes: [
        { name: "work", emptyDir: { sizeLimit: "20Gi" } },
        { name: "tmp", emptyDir: { sizeLimit: "4Gi" } },
        { name: "identity-gate", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
        {
          name: "spiffe-workload-api",
          csi: { driver: "csi.spiffe.io", readOnly: true },
        },
      ],
      containers: [{
        name: "executor",
        image: "registry.example.org/executor:1",
        workingDir: "/work",
        terminationMessagePolicy: "FallbackToLogsOnError",
        volumeMounts: [
          { name: "work", mountPath: "/work" },
          { name: "tmp", mountPath: "/tmp" },
          { name: "identity-gate", mountPath: "/run/identity-gate" },
          { name: "spiffe-workload-api", mountPath: "/run/spire", readOnly: true },
        ],
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
          runAsNonRoot: true,
          runAsUser: 2000,
        },
      }],
    },
  });
});

Deno.test("podManifest() gives the launch environment, the socket and the grace period", () => {
  const { pod } = made("spec: {terminationGracePeriodSeconds: 45}");
  assert.deepEqual(containerEnvironment(pod), {
    HOME: "/work",
    ...SPEC.environment,
    SPIFFE_ENDPOINT_SOCKET: "unix:///run/spire/agent.sock",
    CI_GRACE_SECONDS: "45",
  });
});

Deno.test("podManifest() writes values so that the kubelet gives them as they are", () => {
  fc.assert(fc.property(
    fc.array(fc.constantFrom("$", "(", ")", "HOME", "$$", "$(HOME)", "x", " "), { maxLength: 12 }),
    (parts) => {
      const text = parts.join("");
      const { pod } = made("", {}, { ...SPEC, environment: { VALUE: text } });
      assert.equal(containerEnvironment(pod).VALUE, text);
    },
  ));
});

Deno.test("podManifest() lets the template add what Pods are given by operators", () => {
  const { metadata, spec, container } = made(`
metadata:
  labels: {team: ci}
  annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}
spec:
  nodeSelector: {pool: ci}
  tolerations: [{key: ci, operator: Exists}]
  runtimeClassName: gvisor
  priorityClassName: low
  imagePullSecrets: [{name: registry}]
  volumes: [{name: settings, configMap: {name: settings}}]
  initContainers: [{name: prepare, image: busybox}]
  containers:
    - name: proxy
      image: proxy:1
    - name: executor
      resources: {requests: {cpu: "1", memory: 1Gi}, limits: {memory: 2Gi}}
      env: [{name: LANG, value: C.UTF-8}]
      volumeMounts: [{name: settings, mountPath: /etc/settings}]
`);
  assert.deepEqual(metadata.labels, { team: "ci", ...SPEC.metadata.labels });
  assert.deepEqual(metadata.annotations, {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    ...SPEC.metadata.annotations,
  });
  assert.deepEqual(spec.nodeSelector, { pool: "ci" });
  assert.deepEqual(spec.tolerations, [{ key: "ci", operator: "Exists" }]);
  assert.equal(spec.runtimeClassName, "gvisor");
  assert.equal(spec.priorityClassName, "low");
  assert.deepEqual(spec.imagePullSecrets, [{ name: "registry" }]);
  assert.deepEqual(spec.initContainers, [{ name: "prepare", image: "busybox" }]);
  assert.ok(Array.isArray(spec.containers));
  assert.deepEqual(spec.containers.map(({ name }) => name), ["executor", "proxy"]);
  assert.deepEqual(container.resources, {
    requests: { cpu: "1", memory: "1Gi" },
    limits: { memory: "2Gi" },
  });
  assert.deepEqual(value(container.env, "LANG"), [{ name: "LANG", value: "C.UTF-8" }]);
  assert.ok(Array.isArray(container.volumeMounts) && Array.isArray(spec.volumes));
  assert.deepEqual(container.volumeMounts[0], { name: "settings", mountPath: "/etc/settings" });
  assert.deepEqual(spec.volumes[0], { name: "settings", configMap: { name: "settings" } });
  assert.equal(spec.volumes.length, 5);
});

Deno.test("podManifest() wins for name, image, user, service account, restart policy, environment", () => {
  const { metadata, spec, container } = made(`
metadata: {name: other, namespace: kube-system}
spec:
  serviceAccountName: cluster-admin
  serviceAccount: cluster-admin
  automountServiceAccountToken: true
  restartPolicy: Always
  securityContext: {runAsUser: 0, runAsNonRoot: false, fsGroup: 2000}
  containers:
    - name: executor
      image: evil:1
      restartPolicy: Always
      securityContext: {runAsUser: 0, runAsNonRoot: false}
      env:
        - {name: CI_RUNNER_CAPABILITY, value: mine}
        - {name: SPIFFE_ENDPOINT_SOCKET, value: unix:///tmp/mine}
        - {name: HOME, value: /home/ci}
`);
  assert.equal(metadata.name, SPEC.name);
  assert.equal(metadata.namespace, undefined);
  assert.equal(spec.serviceAccountName, "gitea-task-executor");
  assert.equal(spec.serviceAccount, undefined);
  assert.equal(spec.automountServiceAccountToken, false);
  assert.equal(spec.restartPolicy, "Never");
  assert.deepEqual(spec.securityContext, {
    runAsGroup: 2000,
    seccompProfile: { type: "RuntimeDefault" },
    fsGroup: 2000,
    runAsNonRoot: true,
    runAsUser: 2000,
  });
  assert.equal(container.image, "registry.example.org/executor:1");
  assert.equal(container.restartPolicy, undefined);
  assert.deepEqual(objectOrEmpty(container.securityContext).runAsUser, 2000);
  for (
    const [name, text] of [
      ["CI_RUNNER_CAPABILITY", SPEC.environment.CI_RUNNER_CAPABILITY],
      ["SPIFFE_ENDPOINT_SOCKET", "unix:///run/spire/agent.sock"],
      ["HOME", "/home/ci"],
    ]
  ) {
    assert.deepEqual(value(container.env, String(name)), [{ name, value: text }]);
  }
});

Deno.test("podManifest() lets the template loosen the security context", () => {
  const loosened = made(`
spec:
  securityContext: {seccompProfile: {type: Unconfined}}
  containers: [{name: executor, securityContext: {allowPrivilegeEscalation: true, capabilities: {add: [SETUID]}}}]
`);
  assert.deepEqual(objectOrEmpty(loosened.spec.securityContext).seccompProfile, {
    type: "Unconfined",
  });
  assert.deepEqual(loosened.container.securityContext, {
    allowPrivilegeEscalation: true,
    capabilities: { drop: ["ALL"], add: ["SETUID"] },
    runAsNonRoot: true,
    runAsUser: 2000,
  });
  const privileged = made(
    "spec: {containers: [{name: executor, securityContext: {privileged: true}}]}",
  );
  // The API server refuses privilege without escalation.
  assert.deepEqual(privileged.container.securityContext, {
    privileged: true,
    runAsNonRoot: true,
    runAsUser: 2000,
  });
});

Deno.test("podManifest() takes the template's volumes in place of its own", () => {
  const sized = made("spec: {volumes: [{name: work, emptyDir: {sizeLimit: 100Gi}}]}");
  assert.deepEqual(objectOrEmpty(sized.spec).volumes, [
    { name: "work", emptyDir: { sizeLimit: "100Gi" } },
    { name: "tmp", emptyDir: { sizeLimit: "4Gi" } },
    { name: "identity-gate", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    { name: "spiffe-workload-api", csi: { driver: "csi.spiffe.io", readOnly: true } },
  ]);
  const mounted = made(`
spec:
  volumes: [{name: disk, ephemeral: {}}]
  containers: [{name: executor, volumeMounts: [{name: disk, mountPath: //work}]}]
`);
  assert.ok(Array.isArray(mounted.spec.volumes) && Array.isArray(mounted.container.volumeMounts));
  assert.deepEqual(mounted.spec.volumes.map(({ name }) => name), [
    "disk",
    "tmp",
    "identity-gate",
    "spiffe-workload-api",
  ]);
  assert.deepEqual(mounted.container.volumeMounts.map(({ mountPath }) => mountPath), [
    "//work",
    "/tmp",
    "/run/identity-gate",
    "/run/spire",
  ]);
});

for (
  const [kind, settings, volume] of [
    ["a host path", { kind: "host_path", directory: "/run/spire/agent-sockets" }, {
      hostPath: { path: "/run/spire/agent-sockets", type: "Directory" },
    }],
    ["nothing", { kind: "none" }, undefined],
  ] as const
) {
  Deno.test(`podManifest() mounts ${kind} where the socket is`, () => {
    const { spec, container } = made("", { spiffeVolume: settings });
    assert.ok(Array.isArray(spec.volumes) && Array.isArray(container.volumeMounts));
    const named = spec.volumes.find(({ name }) => name === "spiffe-workload-api");
    const mount = container.volumeMounts.find(({ mountPath }) => mountPath === "/run/spire");
    assert.deepEqual(named, volume && { name: "spiffe-workload-api", ...volume });
    assert.equal(mount?.readOnly, volume === undefined ? undefined : true);
  });
}

Deno.test("checkPodSettings() refuses a socket whose mount would hide what jobs write to", () => {
  for (
    const endpointSocket of ["unix:///tmp/agent.sock", "unix:/run/agent.sock", "unix:///a.sock"]
  ) {
    assert.throws(
      () => checkPodSettings({ ...POD_SETTINGS, endpointSocket }),
      /Mount the Workload API: the folder of SPIFFE_ENDPOINT_SOCKET ".*" would hide ".*": give/,
    );
    checkPodSettings({ ...POD_SETTINGS, endpointSocket, spiffeVolume: { kind: "none" } });
  }
  checkPodSettings(POD_SETTINGS);
  checkPodSettings({ ...POD_SETTINGS, endpointSocket: "unix:/tmp/spire/agent.sock" });
});
