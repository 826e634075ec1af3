import assert from "node:assert/strict";
import type { Config } from "../../controller/config/config.ts";
import { type Machine, parseConfig } from "../../controller/config/parse.ts";
import type { Fault } from "../../controller/config/reader.ts";

/** A key that is long enough. */
export const KEY = "k".repeat(32);
/** UUID of a registration. */
export const UUID = "5d0e29a0-59a4-4f0c-a5a1-6f2f4c6d7e8f";
/** A whole production configuration. */
export const PRODUCTION: Readonly<Record<string, string>> = {
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
  KUBERNETES_SERVICE_HOST: "10.96.0.1",
  KUBERNETES_SERVICE_PORT: "443",
};

/** A machine that has these files. */
export function machine(files: Readonly<Record<string, string>> = {}): Machine {
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

/** Environment variables. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The configuration; fails when there are faults. */
export function ok(env: Env, files?: Readonly<Record<string, string>>): Config {
  const parsed = parseConfig(env, machine(files));
  assert.deepEqual(parsed.kind === "faults" ? parsed.faults : [], []);
  assert.ok(parsed.kind === "ok");
  return parsed.config;
}

/** The faults; none when it can be parsed. */
export function faults(env: Env, files?: Readonly<Record<string, string>>): readonly Fault[] {
  const parsed = parseConfig(env, machine(files));
  return parsed.kind === "faults" ? parsed.faults : [];
}
