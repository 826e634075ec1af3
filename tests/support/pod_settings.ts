import type { IdentitySettings } from "../../backends/pod/identity.ts";
import type { PodSettings } from "../../backends/pod/manifest.ts";
import { NO_TEMPLATE } from "../../backends/pod/template.ts";
import type { Instance } from "../../controller/model/ids.ts";

/** What the Pods of tests are made of. */
export const POD_SETTINGS: PodSettings = {
  image: "registry.example.org/executor:1",
  serviceAccount: "gitea-task-executor",
  userId: 2000,
  template: NO_TEMPLATE,
  spiffeVolume: { kind: "csi" },
  endpointSocket: "unix:///run/spire/agent.sock",
};

/** Whose Pods they are, and what their identities hang below. */
export const POD_IDENTITY: Omit<IdentitySettings, "userId"> = {
  instance: "0011223344" as Instance,
  prefix: "ci.example.org",
  className: "test",
  agentId: "spiffe://example.org/node/test",
};
