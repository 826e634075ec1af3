import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import type { Config } from "./config.ts";
import { type Machine, parseConfig } from "./parse.ts";
import type { Fault } from "./reader.ts";

const KEY = "k".repeat(32);
const UUID = "5d0e29a0-59a4-4f0c-a5a1-6f2f4c6d7e8f";
const PRODUCTION: Readonly<Record<string, string>> = {
  GITEA_URL: "https://gitea.example.org/",
  GITEA_RUNNER_UUID: UUID,
  GITEA_RUNNER_TOKEN: "registration-token",
  NATS_URL: "nats://nats-0.nats:4222,nats://nats-1.nats:4222",
  TRUST_DOMAIN: "example.org",
  SPIFFE_ENDPOINT_SOCKET: "unix:///run/spire/agent.sock",
  RUNNER_FACADE_URL: "https://facade.ci.svc:8443",
  RUNNER_FACADE_SPIFFE_ID: "spiffe://example.org/controller",
  CAPABILITY_KEY: KEY,
  POD_EXECUTOR_IMAGE: "registry.example.org/executor:1",
  SPIRE_AGENT_ID: "spiffe://example.org/spire/agent/k8s_psat/homelab/{nodeUID}",
  OPENSANDBOX_API: "http://opensandbox:8080",
  OPENSANDBOX_API_KEY: "sandbox-key",
  HOSTNAME: "controller-0",
};

function machine(files: Readonly<Record<string, string>> = {}): Machine {
  return {
    readFile(path) {
      const text = files[path];
      if (text === undefined) throw new Deno.errors.NotFound(path);
      return text;
    },
    hostname: "laptop",
    isRoot: false,
  };
}

type Env = Readonly<Record<string, string | undefined>>;

function ok(env: Env, files?: Readonly<Record<string, string>>): Config {
  const parsed = parseConfig(env, machine(files));
  assert.deepEqual(parsed.kind === "faults" ? parsed.faults : [], []);
  assert.ok(parsed.kind === "ok");
  return parsed.config;
}

function faults(env: Env, files?: Readonly<Record<string, string>>): readonly Fault[] {
  const parsed = parseConfig(env, machine(files));
  return parsed.kind === "faults" ? parsed.faults : [];
}

const without = (...names: string[]): Env =>
  Object.fromEntries(Object.entries(PRODUCTION).filter(([name]) => !names.includes(name)));

Deno.test("parseConfig() supplies everything on this machine when nothing is set", () => {
  const { effective, components, ...config } = ok({});
  assert.deepEqual(config, {
    profile: "embedded",
    executors: "process",
    allowUnisolated: false,
    runnerBin: null,
    gitea: {
      url: null,
      registration: null,
      apiToken: null,
      zombieTimeoutMs: 600_000,
      fetchMaxRps: 2,
      heartbeatMaxRps: 5,
      webhookSecret: null,
    },
    nats: {
      servers: null,
      user: null,
      password: null,
      credsFile: null,
      caFile: null,
      stream: "CI_RUNNER",
      subjectBase: "ci.assignment",
    },
    spiffe: {
      trustDomain: "gdr.invalid",
      endpointSocket: null,
      spireServerSocket: null,
      spireParentId: null,
    },
    facade: { listen: { hostname: "127.0.0.1", port: 0 }, url: null, spiffeId: null },
    capabilityKeys: null,
    backends: {
      pod: { enabled: true, capacity: 4, pendingLimit: 20 },
      vm: { enabled: true, capacity: 1, pendingLimit: 20 },
    },
    pod: {
      image: null,
      serviceAccount: "gitea-task-executor",
      userId: 2000,
      templateFile: null,
      spiffeVolume: { kind: "csi" },
      spireCluster: "homelab",
      spireClass: "spire-mgmt-spire",
      spireAgentId: null,
    },
    vm: { api: null, apiKey: null, pool: "ci-vm", timeoutMs: 14_400_000 },
    vmLabel: "vm",
    defaultBackend: null,
    namespace: "gitea-actions",
    metadataPrefix: "ci.ddupan.top",
    executorCapabilities: [],
    leaderElection: "none",
    hostname: "laptop",
    maxWaitMs: 7_200_000,
    stateDir: ".state",
    admin: {
      listen: { hostname: "127.0.0.1", port: 8080 },
      health: null,
      publicUrl: null,
      advertise: null,
    },
    log: { level: "info", format: "json" },
  });
  assert.deepEqual([...components], ["scheduler", "pod-worker", "vm-worker"]);
  assert.equal(effective["POD_CAPACITY"], "4");
  assert.equal(effective["GITEA_URL"], null);
});

Deno.test("parseConfig() is the production profile as soon as one real part is named", () => {
  for (
    const [name, value] of [
      ["NATS_URL", "nats://n:4222"],
      ["SPIFFE_ENDPOINT_SOCKET", "unix:/run/agent.sock"],
      ["POD_EXECUTOR_IMAGE", "image:1"],
      ["OPENSANDBOX_API", "http://o"],
    ] as const
  ) {
    const messages = faults({ [name]: value }).map((fault) => fault.message);
    assert.ok(messages.includes("GITEA_URL is required"), name);
  }
  const config = ok(PRODUCTION);
  assert.equal(config.profile, "production");
  assert.equal(config.executors, "real");
  assert.equal(config.leaderElection, "kubernetes");
  assert.deepEqual(config.facade.listen, { hostname: "0.0.0.0", port: 8443 });
  assert.deepEqual(config.admin.health, { hostname: "0.0.0.0", port: 8081 });
  assert.equal(config.gitea.url, "https://gitea.example.org");
  assert.equal(config.gitea.registration?.token.reveal(), "registration-token");
  assert.deepEqual(config.nats.servers, ["nats://nats-0.nats:4222", "nats://nats-1.nats:4222"]);
});

Deno.test("parseConfig() reports every missing part of production at once with the fixed texts", () => {
  const found = faults({ PROFILE: "production" });
  assert.deepEqual(found.map((fault) => fault.message).sort(), [
    "CAPABILITY_KEY is required",
    "GITEA_RUNNER_TOKEN is required",
    "GITEA_RUNNER_UUID is required",
    "GITEA_URL is required",
    "HOSTNAME is required for scheduler leader election",
    "NATS_URL is required",
    "OPENSANDBOX_API is required for vm-worker",
    "OPENSANDBOX_API_KEY is required for vm-worker",
    "POD_EXECUTOR_IMAGE is required for pod-worker",
    "SPIFFE_ENDPOINT_SOCKET, RUNNER_FACADE_URL, and RUNNER_FACADE_SPIFFE_ID are required",
    "SPIRE_AGENT_ID is required for pod-worker",
    "TRUST_DOMAIN is required",
  ]);
  assert.ok(found.every((fault) => fault.given === "nothing" && fault.allowed !== ""));
});

Deno.test("parseConfig() names each missing variable of the facade when only some are there", () => {
  const found = faults(without("RUNNER_FACADE_URL"));
  assert.deepEqual(found.map(({ variable, message }) => ({ variable, message })), [{
    variable: "RUNNER_FACADE_URL",
    message: "SPIFFE_ENDPOINT_SOCKET, RUNNER_FACADE_URL, and RUNNER_FACADE_SPIFFE_ID are required",
  }]);
});

Deno.test("parseConfig() asks only for what the enabled components need", () => {
  const pod = { ...without("OPENSANDBOX_API", "OPENSANDBOX_API_KEY") };
  assert.equal(ok({ ...pod, COMPONENTS: "scheduler,pod-worker" }).backends.vm.enabled, false);
  const vm = { ...without("POD_EXECUTOR_IMAGE", "SPIRE_AGENT_ID") };
  assert.equal(ok({ ...vm, COMPONENTS: "scheduler, vm-worker" }).backends.pod.enabled, false);
  const badLabel = { ...pod, VM_RUNNER_LABEL: "other" };
  assert.equal(ok({ ...badLabel, COMPONENTS: "scheduler,pod-worker" }).vmLabel, "vm");
  assert.equal(
    faults({ ...PRODUCTION, VM_RUNNER_LABEL: "other" })[0]?.message,
    "VM_RUNNER_LABEL must be vm or vm-dev",
  );
});

/** Variable, refused values, accepted values with what becomes of them. */
const TABLE: readonly {
  readonly name: string;
  readonly env?: Env;
  readonly refused: readonly string[];
  readonly accepted: readonly (readonly [string, (config: Config) => unknown, unknown])[];
}[] = [
  {
    name: "COMPONENTS",
    refused: ["pod-worker", "vm-worker,pod-worker", "scheduler,worker", ",", "Scheduler"],
    accepted: [["scheduler", (c) => [...c.components], ["scheduler"]]],
  },
  {
    name: "PROFILE",
    refused: ["prod", "EMBEDDED"],
    accepted: [["embedded", (c) => c.profile, "embedded"]],
  },
  {
    name: "EXECUTORS",
    refused: ["docker", "Process"],
    accepted: [["process", (c) => c.executors, "process"]],
  },
  {
    name: "ALLOW_UNISOLATED",
    refused: ["true", "1"],
    accepted: [["yes", (c) => c.allowUnisolated, true]],
  },
  { name: "CI_RUNNER_BIN", refused: [], accepted: [["/opt/r", (c) => c.runnerBin, "/opt/r"]] },
  {
    name: "GITEA_URL",
    refused: [
      "gitea.example.org",
      "ftp://g",
      "http://u:p@127.0.0.1",
      "http://127.0.0.1?x=1",
      "http://127.0.0.1#x",
      "http:127.0.0.1",
      "http://",
    ],
    accepted: [
      ["http://127.1:3000/git/", (c) => c.gitea.url, "http://127.1:3000/git"],
      ["http://[::1]:3000", (c) => c.gitea.url, "http://[::1]:3000"],
    ],
  },
  {
    name: "GITEA_RUNNER_UUID",
    env: { GITEA_URL: "http://localhost", GITEA_RUNNER_TOKEN: "t" },
    refused: ["1", "not-a-uuid"],
    accepted: [[UUID, (c) => c.gitea.registration?.uuid, UUID]],
  },
  {
    name: "GITEA_RUNNER_TOKEN",
    env: { GITEA_URL: "http://localhost", GITEA_RUNNER_UUID: UUID },
    refused: [" "],
    accepted: [["t", (c) => c.gitea.registration?.token.reveal(), "t"]],
  },
  {
    name: "GITEA_API_TOKEN",
    refused: [],
    accepted: [["a", (c) => c.gitea.apiToken?.reveal(), "a"]],
  },
  {
    name: "GITEA_WEBHOOK_SECRET",
    refused: [],
    accepted: [["w", (c) => c.gitea.webhookSecret?.reveal(), "w"]],
  },
  {
    name: "GITEA_ZOMBIE_TIMEOUT",
    refused: ["0", "9", "-1", "10m", "1e3", "60.5"],
    accepted: [["60", (c) => c.gitea.zombieTimeoutMs, 60_000]],
  },
  {
    name: "FETCH_MAX_RPS",
    refused: ["0", "-1", "1.5", "fast"],
    accepted: [["7", (c) => c.gitea.fetchMaxRps, 7]],
  },
  {
    name: "HEARTBEAT_MAX_RPS",
    refused: ["0", "x"],
    accepted: [["9", (c) => c.gitea.heartbeatMaxRps, 9]],
  },
  {
    name: "NATS_URL",
    env: { PROFILE: "embedded" },
    refused: [
      "http://n:4222",
      "n:4222",
      "nats://a:4222,,nats://b",
      "nats://u:pw@n:4222",
      "nats://n/x",
      "nats://n:99999",
    ],
    accepted: [
      ["tls://n:4222", (c) => c.nats.servers, ["tls://n:4222"]],
      ["nats://a:1, nats://b:2/", (c) => c.nats.servers, ["nats://a:1", "nats://b:2"]],
    ],
  },
  {
    name: "NATS_USER",
    env: { NATS_PASSWORD: "p" },
    refused: [""],
    accepted: [["u", (c) => c.nats.user, "u"]],
  },
  {
    name: "NATS_PASSWORD",
    env: { NATS_USER: "u" },
    refused: [""],
    accepted: [["p", (c) => c.nats.password?.reveal(), "p"]],
  },
  {
    name: "NATS_CREDS_FILE",
    refused: ["/absent"],
    accepted: [["/file", (c) => c.nats.credsFile, "/file"]],
  },
  {
    name: "NATS_CA_FILE",
    refused: ["/absent"],
    accepted: [["/file", (c) => c.nats.caFile, "/file"]],
  },
  {
    name: "NATS_STREAM",
    refused: ["a.b", "a b", "*"],
    accepted: [["CI_2", (c) => c.nats.stream, "CI_2"]],
  },
  {
    name: "NATS_SUBJECT_BASE",
    refused: ["ci.", ".ci", "ci.>", "ci.*", "c i"],
    accepted: [["a.b.c", (c) => c.nats.subjectBase, "a.b.c"]],
  },
  {
    name: "TRUST_DOMAIN",
    refused: ["Example.org", "spiffe://example.org", "a/b"],
    accepted: [["example.org", (c) => c.spiffe.trustDomain, "example.org"]],
  },
  {
    name: "SPIFFE_ENDPOINT_SOCKET",
    env: {
      PROFILE: "embedded",
      TRUST_DOMAIN: "example.org",
      SPIRE_SERVER_SOCKET: "/run/server.sock",
      SPIRE_PARENT_ID: "spiffe://example.org/agent",
    },
    refused: ["/run/agent.sock", "tcp://1.2.3.4:1", "unix://", "unix://host/x", "unix:run"],
    accepted: [
      ["unix:///run/a", (c) => c.spiffe.endpointSocket, "unix:///run/a"],
      ["unix:/run/a", (c) => c.spiffe.endpointSocket, "unix:/run/a"],
      ["unix:/run/a", (c) => c.spiffe.spireServerSocket, "unix:///run/server.sock"],
      ["unix:/run/a", (c) => c.spiffe.spireParentId, "spiffe://example.org/agent"],
    ],
  },
  { name: "SPIRE_SERVER_SOCKET", refused: ["/run/server.sock", "x"], accepted: [] },
  { name: "SPIRE_PARENT_ID", refused: ["spiffe://example.org/agent", "x"], accepted: [] },
  {
    name: "RUNNER_FACADE_LISTEN",
    refused: ["8443", "host:", ":65536", "a:b:1"],
    accepted: [["[::]:9", (c) => c.facade.listen, { hostname: "::", port: 9 }]],
  },
  {
    name: "RUNNER_FACADE_URL",
    refused: ["http://f", "f:8443"],
    accepted: [["https://f:1/", (c) => c.facade.url, "https://f:1"]],
  },
  {
    name: "RUNNER_FACADE_SPIFFE_ID",
    env: { TRUST_DOMAIN: "example.org" },
    refused: [
      "https://x",
      "spiffe://example.org",
      "spiffe://other.org/c",
      "spiffe://example.org/../c",
    ],
    accepted: [["spiffe://example.org/c", (c) => c.facade.spiffeId, "spiffe://example.org/c"]],
  },
  {
    name: "CAPABILITY_KEY",
    refused: ["short", `${KEY},short`, `${KEY},`],
    accepted: [[`${KEY}, ${KEY}2`, (c) => c.capabilityKeys?.map((k) => k.reveal()), [
      KEY,
      `${KEY}2`,
    ]]],
  },
  {
    name: "POD_NAMESPACE",
    refused: ["Bad", "a.b", "-a"],
    accepted: [["ci", (c) => c.namespace, "ci"]],
  },
  {
    name: "POD_EXECUTOR_IMAGE",
    env: { PROFILE: "embedded" },
    refused: ["a b"],
    accepted: [["i:1", (c) => c.pod.image, "i:1"]],
  },
  {
    name: "POD_SERVICE_ACCOUNT",
    refused: ["A"],
    accepted: [["sa", (c) => c.pod.serviceAccount, "sa"]],
  },
  {
    name: "POD_EXECUTOR_UID",
    refused: ["0", "-5", "x"],
    accepted: [["3000", (c) => c.pod.userId, 3000]],
  },
  {
    name: "POD_CAPACITY",
    refused: ["-1", "four", "1.5", "0x4", "+4"],
    accepted: [
      ["0", (c) => c.backends.pod.capacity, 0],
      ["50", (c) => c.backends.pod.pendingLimit, 100],
    ],
  },
  {
    name: "VM_CAPACITY",
    refused: ["-1", "x"],
    accepted: [["3", (c) => c.backends.vm.capacity, 3]],
  },
  {
    name: "POD_PENDING_LIMIT",
    refused: ["-1"],
    accepted: [["0", (c) => c.backends.pod.pendingLimit, 0]],
  },
  {
    name: "VM_PENDING_LIMIT",
    refused: ["x"],
    accepted: [["5", (c) => c.backends.vm.pendingLimit, 5]],
  },
  {
    name: "POD_TEMPLATE_FILE",
    refused: ["/absent"],
    accepted: [["/file", (c) => c.pod.templateFile, "/file"]],
  },
  {
    name: "POD_SPIFFE_VOLUME",
    refused: ["hostPath", "hostPath:rel", "CSI"],
    accepted: [
      ["none", (c) => c.pod.spiffeVolume, { kind: "none" }],
      ["hostPath:/run/s", (c) => c.pod.spiffeVolume, { kind: "host_path", directory: "/run/s" }],
    ],
  },
  { name: "SPIRE_CLUSTER", refused: ["a/b"], accepted: [["c1", (c) => c.pod.spireCluster, "c1"]] },
  { name: "SPIRE_CLASS", refused: ["a b"], accepted: [["c2", (c) => c.pod.spireClass, "c2"]] },
  {
    name: "SPIRE_AGENT_ID",
    refused: ["agent", "spiffe://td/{node}"],
    accepted: [["spiffe://td/a/{nodeUID}", (c) => c.pod.spireAgentId, "spiffe://td/a/{nodeUID}"]],
  },
  {
    name: "OPENSANDBOX_API",
    env: { PROFILE: "embedded" },
    refused: ["o:1"],
    accepted: [["http://o/v1/", (c) => c.vm.api, "http://o/v1"]],
  },
  {
    name: "OPENSANDBOX_API_KEY",
    refused: [],
    accepted: [["k", (c) => c.vm.apiKey?.reveal(), "k"]],
  },
  { name: "OPENSANDBOX_POOL", refused: ["A B"], accepted: [["p", (c) => c.vm.pool, "p"]] },
  {
    name: "VM_RUNNER_LABEL",
    refused: ["pod", "VM"],
    accepted: [["vm-dev", (c) => c.vmLabel, "vm-dev"]],
  },
  {
    name: "VM_TIMEOUT_SECONDS",
    refused: ["59", "4h"],
    accepted: [["60", (c) => c.vm.timeoutMs, 60_000]],
  },
  {
    name: "DEFAULT_BACKEND",
    refused: ["vm-dev", "x"],
    accepted: [["pod", (c) => c.defaultBackend, "pod"]],
  },
  {
    name: "DEFAULT_BACKEND",
    env: { COMPONENTS: "scheduler,pod-worker" },
    refused: ["vm"],
    accepted: [],
  },
  { name: "HOSTNAME", refused: ["a b", "/x"], accepted: [["c-0", (c) => c.hostname, "c-0"]] },
  {
    name: "LEADER_ELECTION",
    refused: ["etcd"],
    accepted: [["none", (c) => c.leaderElection, "none"]],
  },
  {
    name: "LEADER_ELECTION",
    env: { HOSTNAME: "c-0" },
    refused: [],
    accepted: [["kubernetes", (c) => c.leaderElection, "kubernetes"]],
  },
  {
    name: "MAX_WAIT",
    refused: ["2", "2d", "-1h", "0s", "721h", "2h30"],
    accepted: [
      ["1h30m", (c) => c.maxWaitMs, 5_400_000],
      ["500ms", (c) => c.maxWaitMs, 500],
    ],
  },
  {
    name: "METADATA_PREFIX",
    refused: ["Ci.x", "a/b", "a..b"],
    accepted: [["x.org", (c) => c.metadataPrefix, "x.org"]],
  },
  {
    name: "EXECUTOR_CAPABILITIES",
    refused: ["a b"],
    accepted: [["cancelling, x", (c) => c.executorCapabilities, ["cancelling", "x"]]],
  },
  {
    name: "STATE_DIR",
    refused: [],
    accepted: [["/s/", (c) => c.stateDir, "/s"], ["/", (c) => c.stateDir, "/"]],
  },
  {
    name: "ADMIN_LISTEN",
    refused: [":8080", "0.0.0.0:80", "10.0.0.1:8080", "[::]:80", "8080"],
    accepted: [["localhost:0", (c) => c.admin.listen, { hostname: "localhost", port: 0 }]],
  },
  {
    name: "HEALTH_LISTEN",
    refused: ["x"],
    accepted: [[":9", (c) => c.admin.health, { hostname: "0.0.0.0", port: 9 }]],
  },
  {
    name: "ADMIN_PUBLIC_URL",
    refused: ["ci"],
    accepted: [["https://ci/", (c) => c.admin.publicUrl, "https://ci"]],
  },
  {
    name: "ADMIN_ADVERTISE",
    refused: ["ci"],
    accepted: [["ci:80", (c) => c.admin.advertise, "ci:80"]],
  },
  {
    name: "OIDC_ISSUER",
    refused: ["gitea"],
    accepted: [["https://g", (c) => c.effective["OIDC_ISSUER"], "https://g"]],
  },
  {
    name: "LOG_LEVEL",
    refused: ["trace", "INFO"],
    accepted: [["warn", (c) => c.log.level, "warn"]],
  },
  { name: "LOG_FORMAT", refused: ["text"], accepted: [["pretty", (c) => c.log.format, "pretty"]] },
];

const FILES = { "/file": "content" };

for (const { name, env = {}, refused, accepted } of TABLE) {
  const under = Object.entries(env).map(([key, value]) => `${key}=${value}`).join(" ");
  Deno.test(`parseConfig() checks ${name}${under === "" ? "" : ` when ${under}`}`, () => {
    for (const value of refused) {
      const found = faults({ ...env, [name]: value }, FILES);
      assert.ok(
        found.some((fault) => fault.variable === name),
        `${name}=${JSON.stringify(value)} was taken; faults: ${JSON.stringify(found)}`,
      );
    }
    for (const [value, read, expected] of accepted) {
      assert.deepEqual(read(ok({ ...env, [name]: value }, FILES)), expected, value);
    }
  });
}

Deno.test("parseConfig() wants ALLOW_UNISOLATED=yes for process executors of a remote Gitea", () => {
  const remote = { GITEA_URL: "https://gitea.example.org" };
  const [fault] = faults(remote);
  assert.equal(fault?.variable, "ALLOW_UNISOLATED");
  assert.match(fault?.message ?? "", /^ALLOW_UNISOLATED=yes is required for EXECUTORS=process/);
  assert.equal(faults({ ...remote, ALLOW_UNISOLATED: "no" })[0]?.given, '"no"');
  assert.equal(ok({ ...remote, ALLOW_UNISOLATED: "yes" }).allowUnisolated, true);
  for (const host of ["localhost", "127.0.0.1", "127.1", "[::1]", "git.localhost"]) {
    assert.deepEqual(faults({ GITEA_URL: `http://${host}:3000` }), [], host);
  }
  for (const host of ["127.0.0.1.example.org", "10.0.0.1", "[::2]", "localhost.example.org"]) {
    assert.equal(faults({ GITEA_URL: `http://${host}` }).length, 1, host);
  }
});

Deno.test("parseConfig() reads every secret from its file instead, without the newline at its end", () => {
  const env = {
    GITEA_URL: "http://localhost",
    GITEA_RUNNER_UUID_FILE: "/uuid",
    GITEA_RUNNER_TOKEN_FILE: "/token",
    CAPABILITY_KEY_FILE: "/key",
    GITEA_API_TOKEN_FILE: "/api",
    GITEA_WEBHOOK_SECRET_FILE: "/hook",
    NATS_USER_FILE: "/user",
    NATS_PASSWORD_FILE: "/password",
    OPENSANDBOX_API_KEY_FILE: "/sandbox",
  };
  const config = ok(env, {
    "/uuid": `${UUID}\n`,
    "/token": "tok\n",
    "/key": `${KEY}\n`,
    "/api": "api",
    "/hook": "hook\r\n",
    "/user": "u\n",
    "/password": "p\n",
    "/sandbox": "s\n",
  });
  assert.equal(config.gitea.registration?.uuid, UUID);
  assert.equal(config.gitea.registration?.token.reveal(), "tok");
  assert.deepEqual(config.capabilityKeys?.map((key) => key.reveal()), [KEY]);
  assert.equal(config.gitea.webhookSecret?.reveal(), "hook");
  assert.equal(config.nats.user, "u");
  assert.equal(config.nats.password?.reveal(), "p");
  assert.equal(config.vm.apiKey?.reveal(), "s");
});

Deno.test("parseConfig() refuses a secret given twice, an absent file and an empty file", () => {
  const twice = { GITEA_API_TOKEN: "planted-one", GITEA_API_TOKEN_FILE: "/a" };
  assert.match(faults(twice, { "/a": "planted-two" })[0]?.message ?? "", /are both set/);
  assert.equal(
    faults({ GITEA_API_TOKEN_FILE: "/absent" })[0]?.message,
    "GITEA_API_TOKEN_FILE names a file that cannot be read (NotFound)",
  );
  assert.match(faults({ GITEA_API_TOKEN_FILE: "/a" }, { "/a": "\n" })[0]?.message ?? "", /empty/);
});

Deno.test("parseConfig() shows no secret in faults, warnings and the effective configuration", () => {
  const planted = "planted-secret";
  const wrong: Env = {
    CAPABILITY_KEY: planted,
    GITEA_RUNNER_TOKEN: planted,
    GITEA_API_TOKEN_FILE: planted,
    NATS_URL: `nats://${planted}:${planted}@n:4222`,
    GITEA_URL: `https://u:${planted}@gitea.example.org/?token=${planted}`,
    GITEA_RUNNER_TOKE: planted,
    PROFILE: "embedded",
  };
  const parsed = parseConfig(wrong, machine());
  assert.equal(parsed.kind, "faults");
  assert.ok(!JSON.stringify(parsed).includes(planted), JSON.stringify(parsed, null, 2));
  const config = ok({ ...PRODUCTION, GITEA_API_TOKEN: planted, CAPABILITY_KEY: planted.repeat(3) });
  assert.ok(!JSON.stringify(config).includes(planted));
  assert.ok(!Deno.inspect(config, { depth: 10 }).includes(planted));
  assert.equal(config.effective["GITEA_API_TOKEN"], "[secret]");
  assert.ok(config.gitea.apiToken instanceof Secret);
});

Deno.test("parseConfig() wants both halves of a pair", () => {
  const names = (env: Env) => faults(env).map((fault) => fault.variable).sort();
  assert.deepEqual(names({ NATS_USER: "u" }), ["NATS_PASSWORD"]);
  assert.deepEqual(names({ NATS_PASSWORD: "p" }), ["NATS_USER"]);
  assert.deepEqual(names({ GITEA_URL: "http://localhost", GITEA_RUNNER_UUID: UUID }), [
    "GITEA_RUNNER_TOKEN",
  ]);
  assert.deepEqual(names({ GITEA_RUNNER_UUID: UUID, GITEA_RUNNER_TOKEN: "t" }), ["GITEA_URL"]);
  assert.deepEqual(
    names({
      PROFILE: "embedded",
      TRUST_DOMAIN: "example.org",
      SPIFFE_ENDPOINT_SOCKET: "unix:/run/a",
    }),
    ["SPIRE_PARENT_ID", "SPIRE_SERVER_SOCKET"],
  );
});

Deno.test("parseConfig() warns of typing errors with a suggestion, and not of Kubernetes' own variables", () => {
  const parsed = parseConfig({
    GITEA_RUNER_TOKEN: "x",
    POD_CAPACTY: "3",
    OIDC_SOMETHING_ELSE: "x",
    NATS_SERVICE_HOST: "10.0.0.1",
    NATS_PORT_4222_TCP_ADDR: "10.0.0.1",
    GITEA_SERVICE_PORT_HTTP: "3000",
    POD_NAME: "x",
    PATH: "/bin",
  }, machine());
  assert.deepEqual(parsed.warnings, [
    "GITEA_RUNER_TOKEN is not a setting of this program and is ignored: did you mean GITEA_RUNNER_TOKEN?",
    "OIDC_SOMETHING_ELSE is not a setting of this program and is ignored",
    "POD_CAPACTY is not a setting of this program and is ignored: did you mean POD_CAPACITY?",
  ]);
});

Deno.test("parseConfig() says that sign-in has no effect yet when it is configured", () => {
  const parsed = parseConfig({ ADMIN_TOKENS: "a:admin:00" }, machine());
  assert.equal(parsed.kind, "ok");
  assert.match(parsed.warnings[0] ?? "", /^ADMIN_TOKENS has no effect in this version/);
});

Deno.test("parseConfig() returns a frozen configuration", () => {
  const config = ok(PRODUCTION);
  for (
    const part of [config, config.gitea, config.backends.pod, config.nats.servers, config.effective]
  ) {
    assert.ok(Object.isFrozen(part));
  }
});
