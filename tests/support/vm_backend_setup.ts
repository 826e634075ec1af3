import { decodeAnnotations, encodeAnnotations } from "../../backends/vm/annotations.ts";
import type { Sandboxes } from "../../backends/vm/sandboxes.ts";
import { createVmBackend, type VmBackendOptions } from "../../backends/vm/vm_backend.ts";
import type { Backend, ExecutorSpec } from "../../controller/backend.ts";
import type { ExecutorName, Instance } from "../../controller/model/ids.ts";
import { withSignature } from "../../controller/model/metadata.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { specOf } from "../contract/backend_suite.ts";
import {
  type FakeOpenSandbox,
  type FakeSandbox,
  startFakeOpenSandbox,
} from "../fakes/opensandbox.ts";
import { openLifecycle } from "./lifecycle_setup.ts";

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

/** What the contract suite asks a VM backend to make for a task, signed as the controller does it. */
export function signedSpec(task: string, signature: string = "5".repeat(64)): ExecutorSpec {
  const spec = specOf(task, "vm");
  const metadata = withSignature(spec.metadata, { prefix: VM_PREFIX, signature });
  return { ...spec, metadata };
}

/** The metadata of the sandbox that a VM backend makes for `spec`. */
export function sandboxMetadata({ metadata }: ExecutorSpec): Record<string, string> {
  return { ...metadata.labels, ...encodeAnnotations(metadata.annotations, VM_PREFIX) };
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

/** A VM backend on a fake server, with `over` in place of parts of its client. */
export function setupVmBackend(
  settings: Partial<VmBackendOptions> = {},
  over: (api: Sandboxes) => Partial<Sandboxes> = () => ({}),
) {
  const server = startFakeOpenSandbox();
  const lifecycle = openLifecycle(server);
  const api = { ...lifecycle, ...over(lifecycle) };
  return {
    server,
    api,
    backend: vmBackend(api, settings),
    /** Another process on the same server. */
    next: (more: Partial<VmBackendOptions> = {}) => vmBackend(api, { ...settings, ...more }),
    async [Symbol.asyncDispose]() {
      lifecycle[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}
