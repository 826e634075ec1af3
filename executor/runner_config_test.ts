import assert from "node:assert/strict";
import {
  runnerAddress,
  runnerConfig,
  runnerEnvironment,
  runnerFile,
  type RunnerSetup,
  upstreamProxy,
} from "./runner_config.ts";

const SETUP: RunnerSetup = {
  env: {
    PATH: "/bin",
    HOME: "/home/ci",
    CI_RUNNER_CAPABILITY: "secret",
    CI_ASSIGNMENT_ID: "gitea-task-1",
    RUNNER_FACADE_URL: "https://facade",
    CI_SPIFFE_ID: "spiffe://example.org/ci/a/b/c",
    SPIFFE_ENDPOINT_SOCKET: "unix:///s",
    no_proxy: "localhost",
    HTTPS_PROXY: "http://corporate:3128",
    MINE: "kept",
  },
  work: "/w",
  proxyUrl: "http://127.0.0.1:4711",
  secure: false,
  certificateDir: undefined,
  shutdownMs: 60_000,
};

Deno.test("runnerEnvironment() hides the gate's variables and sets the one proxy", () => {
  assert.deepEqual(runnerEnvironment(SETUP), {
    PATH: "/bin",
    HOME: "/home/ci",
    CI_SPIFFE_ID: "spiffe://example.org/ci/a/b/c",
    SPIFFE_ENDPOINT_SOCKET: "unix:///s",
    MINE: "kept",
    HTTP_PROXY: "http://127.0.0.1:4711",
  });
});

Deno.test("runnerConfig() gives the steps back the proxy variables of the container", () => {
  const config = JSON.parse(runnerConfig(SETUP));
  assert.deepEqual(config.runner.envs, {
    HTTP_PROXY: "",
    HTTPS_PROXY: "http://corporate:3128",
    no_proxy: "localhost",
  });
  assert.equal(config.runner.file, "/dev/stdin");
  assert.equal(config.runner.shutdown_timeout, "60s");
  assert.equal(config.cache.enabled, false);
  assert.equal(JSON.stringify(config).includes("secret"), false);
});

Deno.test("runnerConfig() resets HTTPS_PROXY and the certificate folder for an https Gitea", () => {
  const setup = { ...SETUP, secure: true, certificateDir: "/w/certificates" };
  const { envs } = JSON.parse(runnerConfig(setup)).runner;
  assert.equal(envs.HTTPS_PROXY, "http://corporate:3128");
  assert.equal(envs.SSL_CERT_DIR, "/etc/ssl/certs");
  const env = runnerEnvironment(setup);
  assert.equal(env["HTTPS_PROXY"], "http://127.0.0.1:4711");
  assert.equal(env["SSL_CERT_DIR"], "/etc/ssl/certs:/w/certificates");
});

Deno.test("runnerFile() carries the nonce as token and host labels", () => {
  const file = JSON.parse(runnerFile({ uuid: "u", nonce: "n", address: "http://gitea" }));
  assert.equal(file.token, "n");
  assert.equal(file.ephemeral, false);
  assert.deepEqual(file.labels, ["self-hosted:host", "pod:host", "vm:host", "vm-dev:host"]);
});

Deno.test("runnerAddress() spells a Gitea of this machine so that Go uses the proxy", () => {
  assert.equal(runnerAddress("http://127.0.0.1:3000/git"), "http://127.1:3000/git");
  assert.equal(runnerAddress("http://localhost:3000"), "http://127.1:3000");
  assert.equal(runnerAddress("https://git.example.org"), "https://git.example.org");
  // Go takes all of 127.0.0.0/8 for this machine.
  assert.equal(runnerAddress("http://127.0.0.11:3000"), "http://127.11:3000");
  assert.equal(runnerAddress("http://127.1.2.3"), "http://127.66051");
  assert.equal(new URL(runnerAddress("http://127.1.2.3")).hostname, "127.1.2.3");
  for (const other of ["http://127.0.0.1.example.org", "http://localhost.example.org:3000"]) {
    assert.equal(runnerAddress(other), other);
  }
});

Deno.test("upstreamProxy() follows NO_PROXY", () => {
  const env = { HTTPS_PROXY: "http://p:3128", NO_PROXY: "example.org, .internal,10.0.0.1" };
  assert.equal(upstreamProxy(env, "github.com:443")?.host, "p:3128");
  assert.equal(upstreamProxy(env, "git.example.org:443"), undefined);
  assert.equal(upstreamProxy(env, "a.internal:443"), undefined);
  assert.equal(upstreamProxy(env, "10.0.0.1:443"), undefined);
  assert.equal(upstreamProxy({}, "github.com:443"), undefined);
});
