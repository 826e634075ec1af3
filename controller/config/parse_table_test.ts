import { type Env, KEY, UUID } from "../../tests/support/config_env.ts";
import { type ConfigRow, testConfigRows } from "../../tests/support/config_rows.ts";

/** What makes an API server needed, without executors that need one. */
const ELECTED: Env = { LEADER_ELECTION: "kubernetes", HOSTNAME: "c-0" };

const TABLE: readonly ConfigRow[] = [
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
    refused: [" ", "t\nx: y", "t\u0000", "\u00e9"],
    accepted: [["t", (c) => c.gitea.registration?.token.reveal(), "t"]],
  },
  {
    name: "GITEA_API_TOKEN",
    refused: ["a\r\nb"],
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
    refused: ["-1", "x", "100001"],
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
    refused: ["k\nl", "k\u0007"],
    accepted: [
      ["k", (c) => c.vm.apiKey?.reveal(), "k"],
      ["k l", (c) => c.vm.apiKey?.reveal(), "k l"],
    ],
  },
  { name: "OPENSANDBOX_POOL", refused: ["A B"], accepted: [["p", (c) => c.vm.pool, "p"]] },
  {
    name: "VM_RUNNER_LABEL",
    refused: ["pod", "VM"],
    accepted: [["vm-dev", (c) => c.vmLabel, "vm-dev"]],
  },
  {
    name: "VM_TIMEOUT_SECONDS",
    refused: ["59", "4h", "2592001"],
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
    env: { HOSTNAME: "c-0", KUBECONFIG: "/file" },
    refused: [],
    accepted: [["kubernetes", (c) => c.leaderElection, "kubernetes"]],
  },
  {
    name: "KUBECONFIG",
    env: ELECTED,
    refused: ["/absent"],
    accepted: [["/file", (c) => c.kubernetes, { kind: "kubeconfig", path: "/file" }]],
  },
  {
    name: "KUBERNETES_SERVICE_HOST",
    env: ELECTED,
    refused: ["a b", "https://10.0.0.1", "/", "10.0.0.1/x"],
    accepted: [
      ["10.96.0.1", (c) => c.kubernetes, {
        kind: "service_account",
        host: "10.96.0.1",
        port: 443,
        directory: "/var/run/secrets/kubernetes.io/serviceaccount",
      }],
      ["fd00::1", (c) => c.kubernetes?.kind, "service_account"],
      ["::1", (c) => c.kubernetes?.kind, "service_account"],
    ],
  },
  {
    name: "KUBERNETES_SERVICE_PORT",
    env: { ...ELECTED, KUBERNETES_SERVICE_HOST: "h" },
    refused: ["0", "65536", "https"],
    accepted: [[
      "6443",
      (c) => c.kubernetes?.kind === "service_account" && c.kubernetes.port,
      6443,
    ]],
  },
  {
    name: "KUBERNETES_SERVICE_ACCOUNT_DIR",
    env: { ...ELECTED, KUBERNETES_SERVICE_HOST: "h" },
    refused: ["relative/dir"],
    accepted: [[
      "/run/sa/",
      (c) => c.kubernetes?.kind === "service_account" && c.kubernetes.directory,
      "/run/sa",
    ]],
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
    accepted: [[":9", (c) => c.admin.health, { hostname: "", port: 9 }]],
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
    name: "ADMIN_TOKENS",
    refused: [
      "ci:admin:00",
      `ci:root:${"a".repeat(64)}`,
      `:admin:${"a".repeat(64)}`,
      `a:admin:${"a".repeat(64)}\na:viewer:${"b".repeat(64)}`,
      `a:admin:${"a".repeat(64)}\nb:viewer:${"A".repeat(64)}`,
    ],
    accepted: [[
      `# who\nci:admin:${"AB".repeat(32)}\n`,
      (c) => c.admin.access.tokens,
      [{ name: "ci", role: "admin", sha256: "ab".repeat(32) }],
    ]],
  },
  {
    name: "OIDC_ISSUER",
    env: { OIDC_CLIENT_ID: "x", OIDC_ROLE_MAP: "*=viewer", ADMIN_PUBLIC_URL: "https://c" },
    refused: ["gitea", "http://gitea.example.org", "https://u@g", "https://g/?a"],
    accepted: [
      ["https://g", (c) => c.admin.access.oidc?.issuer, "https://g"],
      ["http://127.0.0.1:3/", (c) => c.admin.access.oidc?.issuer, "http://127.0.0.1:3/"],
    ],
  },
  {
    name: "OIDC_ROLE_MAP",
    env: { OIDC_CLIENT_ID: "x", OIDC_ISSUER: "https://g", ADMIN_PUBLIC_URL: "https://c" },
    refused: ["ops", "ops=root", "=admin", "ops=admin,x"],
    accepted: [[
      "a=b=admin",
      (c) => c.admin.access.oidc?.roles,
      [{ group: "a=b", role: "admin" }],
    ]],
  },
  {
    name: "LOG_LEVEL",
    refused: ["trace", "INFO"],
    accepted: [["warn", (c) => c.log.level, "warn"]],
  },
  { name: "LOG_FORMAT", refused: ["text"], accepted: [["pretty", (c) => c.log.format, "pretty"]] },
];

testConfigRows(TABLE, { "/file": "content" });
