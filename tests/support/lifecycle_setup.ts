import type { NewSandbox } from "../../backends/vm/sandboxes.ts";
import {
  createLifecycle,
  type Lifecycle,
  type LifecycleOptions,
} from "../../clients/opensandbox/lifecycle.ts";
import { systemClock } from "../../lib/clock.ts";
import { Secret } from "../../lib/secret.ts";
import { FAKE_KEY, type FakeOpenSandbox, type Fault } from "../fakes/opensandbox.ts";

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

/** Spoils the next request that fits; before it is done, unless `fault` says otherwise. */
export function spoil(server: FakeOpenSandbox, fault: Omit<Fault, "when"> & Partial<Fault>): void {
  server.faults.push({ when: "before", ...fault });
}

/** Answers the next requests of that method with `body`, as JSON unless it is a text. */
export function answer(
  server: FakeOpenSandbox,
  [method, body]: readonly [method: string, body: unknown],
  { status = 200, headers = {}, times = 1 }: {
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly times?: number;
  } = {},
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  spoil(server, { method, times, answer: { kind: "status", status, body: text, headers } });
}

/** One page of a list, as the API answers it. */
export function pageOf(items: readonly unknown[], total: number, hasNextPage: boolean) {
  return {
    items,
    pagination: { page: 1, pageSize: 100, totalItems: total, totalPages: 1, hasNextPage },
  };
}
