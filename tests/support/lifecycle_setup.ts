import type { NewSandbox } from "../../backends/vm/sandboxes.ts";
import {
  createLifecycle,
  type Lifecycle,
  type LifecycleOptions,
} from "../../clients/opensandbox/lifecycle.ts";
import { systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { FAKE_KEY } from "../fakes/opensandbox.ts";

/** A sandbox that tests ask for. */
export const NEW_SANDBOX: NewSandbox = {
  pool: "ci-vm",
  entrypoint: ["/bin/gate"],
  environment: { A: "b" },
  metadata: { "ci.example.org/task-id": "7" },
  timeoutMs: 90_500,
};

/** A client of the fake server, with its key unless `options` say otherwise. */
export function openLifecycle(
  server: { readonly url: string },
  options: Partial<LifecycleOptions> = {},
): Lifecycle {
  return createLifecycle({
    url: server.url,
    apiKey: new Secret(FAKE_KEY),
    clock: systemClock,
    ...options,
  });
}
