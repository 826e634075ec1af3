import assert from "node:assert/strict";
import { createGiteaRoute } from "./gitea_route.ts";
import { runnerAddress } from "./runner_config.ts";

const RPC = "/api/actions/runner.v1.RunnerService/FetchTask";
const cases: [string, string, string, string, string | undefined][] = [
  ["its own call", "http://git.example.org", "POST", `http://git.example.org${RPC}`, "FetchTask"],
  [
    "the default port",
    "http://git.example.org",
    "POST",
    `http://git.example.org:80${RPC}`,
    "FetchTask",
  ],
  ["another port", "http://git.example.org", "POST", `http://git.example.org:81${RPC}`, undefined],
  ["another host", "http://git.example.org", "POST", `http://git.example.com${RPC}`, undefined],
  ["a GET", "http://git.example.org", "GET", `http://git.example.org${RPC}`, undefined],
  [
    "a sub-path",
    "http://git.example.org/a/b",
    "POST",
    `http://git.example.org/a/b${RPC}`,
    "FetchTask",
  ],
  ["no sub-path", "http://git.example.org/a", "POST", `http://git.example.org${RPC}`, undefined],
  ["another spelling", "http://127.1:3000", "POST", `http://127.0.0.1:3000${RPC}`, "FetchTask"],
  [
    "the REST API",
    "http://git.example.org",
    "POST",
    "http://git.example.org/api/v1/user",
    undefined,
  ],
  [
    "a path that climbs",
    "http://git.example.org",
    "POST",
    "http://git.example.org/api/actions/runner.v1.RunnerService/../../v1/user",
    undefined,
  ],
];

for (const [name, gitea, method, target, rpc] of cases) {
  Deno.test(`route() sends ${name} to the ${rpc === undefined ? "origin" : "facade"}`, () => {
    const to = createGiteaRoute(gitea).route(method, target);
    const expected = rpc === undefined
      ? { kind: "origin" }
      : { kind: "facade", method: `/runner.v1.RunnerService/${rpc}` };
    assert.deepEqual(to, expected);
  });
}

Deno.test("route() knows a Gitea of this machine as the runner spells it", () => {
  for (const host of ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.11", "127.1"]) {
    const address = runnerAddress(`http://${host}:3000/git`);
    const to = createGiteaRoute(address).route("POST", address + RPC);
    assert.equal(to.kind, "facade", host);
  }
});

Deno.test("isGitea() knows the host and port of an https Gitea only", () => {
  const route = createGiteaRoute("https://git.example.org");
  assert.equal(route.isGitea("git.example.org:443"), true);
  assert.equal(route.isGitea("GIT.example.org:443"), true);
  assert.equal(route.isGitea("git.example.org:8443"), false);
  assert.equal(route.isGitea("evil.example.org:443"), false);
  assert.equal(createGiteaRoute("http://git.example.org").isGitea("git.example.org:443"), false);
});
