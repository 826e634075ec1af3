import assert from "node:assert/strict";
import { parseLaunch } from "./launch.ts";

const ENV = {
  CI_ASSIGNMENT_ID: "gitea-task-42",
  CI_RUNNER_CAPABILITY: "abcdefghijklmnopqrstuvwxyz",
  CI_SPIFFE_ID: "spiffe://example.org/ci/owner/repo/Build_1",
  RUNNER_FACADE_URL: "https://facade.example.org:8443/",
  RUNNER_FACADE_SPIFFE_ID: "spiffe://example.org/controller",
  GITEA_URL: "http://127.1:3000/sub/",
  SPIFFE_ENDPOINT_SOCKET: "unix:///run/spire/agent.sock",
};

Deno.test("parseLaunch() reads the launch environment", () => {
  const parsed = parseLaunch(ENV);
  assert.equal(parsed.kind, "launch");
  if (parsed.kind !== "launch") return;
  assert.equal(parsed.launch.giteaUrl, "http://127.1:3000/sub");
  assert.equal(parsed.launch.facadeUrl, "https://facade.example.org:8443");
  assert.equal(parsed.launch.capability.reveal(), ENV.CI_RUNNER_CAPABILITY);
  assert.deepEqual(parsed.launch.runner, ["gitea-runner"]);
  assert.equal(parsed.launch.graceMs, 120_000);
});

Deno.test("parseLaunch() reports every fault and never the capability", () => {
  const parsed = parseLaunch({
    CI_RUNNER_CAPABILITY: "short secret",
    CI_SPIFFE_ID: "https://example.org/x",
    RUNNER_FACADE_URL: "http://plain.example.org",
    CI_GRACE_SECONDS: "0",
  });
  assert.equal(parsed.kind, "faults");
  if (parsed.kind !== "faults") return;
  const names = parsed.faults.map((fault) => /^Read (\w+):/.exec(fault)?.[1]).sort();
  assert.deepEqual(names, [
    "CI_ASSIGNMENT_ID",
    "CI_GRACE_SECONDS",
    "CI_RUNNER_CAPABILITY",
    "CI_SPIFFE_ID",
    "GITEA_URL",
    "RUNNER_FACADE_SPIFFE_ID",
    "RUNNER_FACADE_URL",
    "SPIFFE_ENDPOINT_SOCKET",
  ]);
  assert.equal(parsed.faults.some((fault) => fault.includes("short secret")), false);
});

Deno.test("parseLaunch() takes a runner as a path or as a list of words", () => {
  const runner = (text: string) => {
    const parsed = parseLaunch({ ...ENV, CI_RUNNER_BIN: text });
    return parsed.kind === "launch" ? parsed.launch.runner : [];
  };
  assert.deepEqual(runner("/opt/gitea-runner"), ["/opt/gitea-runner"]);
  assert.deepEqual(runner('["deno","run","x.mjs"]'), ["deno", "run", "x.mjs"]);
});
