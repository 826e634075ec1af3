import assert from "node:assert/strict";
import { Secret } from "../../lib/secret.ts";
import { parseConfig } from "./parse.ts";
import {
  type Env,
  faults,
  KEY,
  machine,
  ok,
  PRODUCTION,
  UUID,
} from "../../tests/support/config_env.ts";

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
    vm: { api: null, apiKey: null, apiKeyFile: null, pool: "ci-vm", timeoutMs: 14_400_000 },
    vmLabel: "vm",
    defaultBackend: null,
    namespace: "gitea-actions",
    metadataPrefix: "ci.ddupan.top",
    executorCapabilities: [],
    leaderElection: "none",
    kubernetes: null,
    hostname: "laptop",
    maxWaitMs: 7_200_000,
    stateDir: ".state",
    admin: {
      listen: { hostname: "127.0.0.1", port: 8080 },
      health: null,
      publicUrl: null,
      access: { tokens: [], oidc: null },
      advertise: null,
    },
    traces: null,
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
  assert.deepEqual(config.facade.listen, { hostname: "", port: 8443 });
  assert.deepEqual(config.admin.health, { hostname: "", port: 8081 });
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
    "KUBECONFIG or KUBERNETES_SERVICE_HOST is required for pod-worker",
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

Deno.test("parseConfig() prefers KUBECONFIG to the service account of the Pod", () => {
  const config = ok({ ...PRODUCTION, KUBECONFIG: "/etc/kubeconfig" }, { "/etc/kubeconfig": "x" });
  assert.deepEqual(config.kubernetes, { kind: "kubeconfig", path: "/etc/kubeconfig" });
});

Deno.test("parseConfig() looks for an API server only where Pods or the election need it", () => {
  const here = { KUBECONFIG: "/absent", KUBERNETES_SERVICE_HOST: "a b" };
  assert.equal(ok(here).kubernetes, null);
  const vmOnly = {
    ...without("POD_EXECUTOR_IMAGE", "SPIRE_AGENT_ID"),
    COMPONENTS: "scheduler,vm-worker",
    LEADER_ELECTION: "none",
  };
  assert.equal(ok({ ...vmOnly, ...here }).kubernetes, null);
  const messages = (env: Env) => faults(env).map(({ message }) => message);
  assert.deepEqual(
    messages({ ...vmOnly, LEADER_ELECTION: "kubernetes", KUBERNETES_SERVICE_HOST: undefined }),
    ["KUBECONFIG or KUBERNETES_SERVICE_HOST is required for LEADER_ELECTION=kubernetes"],
  );
  assert.deepEqual(
    messages({ ...without("KUBERNETES_SERVICE_HOST"), LEADER_ELECTION: "none" }),
    ["KUBECONFIG or KUBERNETES_SERVICE_HOST is required for pod-worker"],
  );
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
  assert.equal(config.vm.apiKeyFile, "/sandbox");
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

Deno.test("parseConfig() says why the profile is production when settings are missing that nobody meant", () => {
  const hintsOf = (env: Env) => {
    const parsed = parseConfig(env, machine());
    return parsed.kind === "faults" ? parsed.warnings : assert.fail();
  };
  const NATS_URL = "nats://127.0.0.1:4222";
  const said = "set; with PROFILE=embedded what is missing is supplied on this machine";
  assert.deepEqual(hintsOf({ NATS_URL }), [`PROFILE is production because NATS_URL is ${said}`]);
  assert.deepEqual(hintsOf({ NATS_URL, POD_EXECUTOR_IMAGE: "a" }), [
    `PROFILE is production because NATS_URL and POD_EXECUTOR_IMAGE are ${said}`,
  ]);
  assert.deepEqual(hintsOf({ NATS_URL, PROFILE: "production" }), []);
  assert.deepEqual(hintsOf({ POD_CAPACITY: "four" }), []);
  assert.equal(parseConfig({ NATS_URL, PROFILE: "embedded" }, machine()).kind, "ok");
});

Deno.test("parseConfig() tells settings of ctl from its own when they stand in one shell", () => {
  const parsed = parseConfig({
    ADMIN_TOKEN: "x",
    ADMIN_TOKEN_FILE: "token",
    ADMIN_URL: "http://127.0.0.1:8080",
  }, machine());
  assert.deepEqual(parsed.warnings, [
    'ADMIN_TOKEN is for "deno task ctl" and is ignored here: ADMIN_TOKENS says who may come in',
    'ADMIN_TOKEN_FILE is for "deno task ctl" and is ignored here: ADMIN_TOKENS_FILE says who may come in',
    'ADMIN_URL is for "deno task ctl" and is ignored here: ADMIN_LISTEN says where the dashboard listens',
  ]);
});

Deno.test("parseConfig() lets the dashboard leave loopback once somebody says who may look", () => {
  const hash = "ab".repeat(32);
  const config = ok({ ADMIN_LISTEN: ":8080", ADMIN_TOKENS: `ci:viewer:${hash}\n` });
  assert.deepEqual(config.admin.access.tokens, [{ name: "ci", role: "viewer", sha256: hash }]);
  assert.equal(config.effective["ADMIN_TOKENS"], "[secret]");
});

const variablesOf = (env: Env) => faults(env).map(({ variable }) => variable);

Deno.test("parseConfig() wants everything that single sign-on needs", () => {
  assert.deepEqual(variablesOf({ OIDC_ISSUER: "https://g" }), [
    "OIDC_CLIENT_ID, OIDC_ROLE_MAP, ADMIN_PUBLIC_URL",
  ]);
  assert.deepEqual(variablesOf({ OIDC_ROLE_MAP: "a=admin" }), ["OIDC_ISSUER"]);
  const oidc = ok({
    OIDC_ISSUER: "https://gitea.example.org/",
    OIDC_CLIENT_ID: "id",
    OIDC_ROLE_MAP: "ops:oncall=operator, *=viewer",
    ADMIN_PUBLIC_URL: "https://ci.example.org/",
  }).admin.access.oidc;
  assert.equal(oidc?.redirectUri, "https://ci.example.org/sign-in/callback");
  assert.deepEqual(oidc?.roles, [{ group: "ops:oncall", role: "operator" }, {
    group: "*",
    role: "viewer",
  }]);
});

Deno.test("parseConfig() returns a frozen configuration", () => {
  const config = ok(PRODUCTION);
  for (
    const part of [config, config.gitea, config.backends.pod, config.nats.servers, config.effective]
  ) {
    assert.ok(Object.isFrozen(part));
  }
});
