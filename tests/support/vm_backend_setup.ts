import { decodeAnnotations } from "../../backends/vm/annotations.ts";
import { createVmBackend, type VmBackendOptions } from "../../backends/vm/vm_backend.ts";
import { createLifecycle } from "../../clients/opensandbox/lifecycle.ts";
import type { Backend } from "../../controller/backend.ts";
import type { ExecutorName, Instance } from "../../controller/model/ids.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { Secret } from "../../lib/secret.ts";
import { FAKE_KEY, type FakeOpenSandbox, type FakeSandbox } from "../fakes/opensandbox.ts";

/** Prefix of the contract suite's metadata. */
export const VM_PREFIX = "ci.example.org";

/** Settings of the VM backend in tests, with bounds that keep nobody waiting. */
export const VM_SETTINGS: Omit<VmBackendOptions, "api"> = {
  pool: "ci-vm",
  timeoutMs: 14_400_000,
  endpointSocket: "unix:///run/spire/agent.sock",
  prefix: VM_PREFIX,
  instance: "0011223344" as Instance,
  clock: systemClock,
  logger: silentLogger,
  guard() {},
  pollMs: 50,
  createsPerSecond: 1_000,
  doubtMs: 200,
};

/** A client of the fake server; pushed on `stack`. */
export function openLifecycle(server: { readonly url: string }, stack: DisposableStack) {
  return stack.use(createLifecycle({
    url: server.url,
    apiKey: new Secret(FAKE_KEY),
    clock: systemClock,
  }));
}

/** The sandbox of an executor of the fake server; undefined when there is none. */
export function findSandbox(server: FakeOpenSandbox, name: ExecutorName): FakeSandbox | undefined {
  const [, instance, task] = name.split("-");
  return [...server.sandboxes.values()].find(({ metadata }) =>
    metadata[`${VM_PREFIX}/instance`] === instance && metadata[`${VM_PREFIX}/task-id`] === task
  );
}

/** As {@link findSandbox}; throws when there is none. */
export function sandboxOf(server: FakeOpenSandbox, name: ExecutorName): FakeSandbox {
  const found = findSandbox(server, name);
  if (found === undefined) throw new Error(`Find the sandbox of "${name}": there is none`);
  return found;
}

/** The SPIFFE ID that a sandbox with these metadata would be given; null if none. */
export function boundIn(metadata: Readonly<Record<string, string>> | undefined): string | null {
  if (metadata?.[`${VM_PREFIX}/identity`] !== "bound") return null;
  return annotationIn(metadata, "spiffe-id");
}

/** Key of the job that a sandbox with these metadata is for; null when they do not tell. */
export function jobIn(metadata: Readonly<Record<string, string>>): string | null {
  return annotationIn(metadata, "job-key");
}

function annotationIn(metadata: Readonly<Record<string, string>>, name: string): string | null {
  const decoded = decodeAnnotations(metadata, VM_PREFIX);
  return decoded.kind === "decoded" ? decoded.annotations[`${VM_PREFIX}/${name}`] ?? null : null;
}

/** A VM backend on `api`, with other settings than {@link VM_SETTINGS} where they are given. */
export function vmBackend(
  api: VmBackendOptions["api"],
  settings: Partial<VmBackendOptions> = {},
): Backend {
  return createVmBackend({ ...VM_SETTINGS, api, ...settings });
}
