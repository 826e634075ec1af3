import { startFakeOpenSandbox } from "../fakes/opensandbox.ts";
import { openLifecycle } from "../support/lifecycle_setup.ts";
import {
  boundIn,
  findSandbox,
  sandboxOf,
  VM_PREFIX,
  vmBackend,
} from "../support/vm_backend_setup.ts";
import { backendContract } from "./backend_contract.ts";

backendContract("VM backend on a Lifecycle API in memory", () => {
  const server = startFakeOpenSandbox();
  const api = openLifecycle(server);
  return Promise.resolve({
    backend: vmBackend(api),
    reopen: () => Promise.resolve(vmBackend(api)),
    end(name, { code }) {
      server.end(sandboxOf(server, name).id, code);
      return Promise.resolve();
    },
    corrupt(name) {
      delete sandboxOf(server, name).metadata[`${VM_PREFIX}/annotations-001`];
      return Promise.resolve();
    },
    boundTo: (name) => Promise.resolve(boundIn(findSandbox(server, name)?.metadata)),
    unbind(name) {
      delete sandboxOf(server, name).metadata[`${VM_PREFIX}/identity`];
      return Promise.resolve();
    },
    environmentOf: (name) => Promise.resolve(sandboxOf(server, name).env),
    loseNextAnswer() {
      server.faults.push({ method: "POST", when: "after", answer: { kind: "cut" } });
    },
    tellsEnd: "exit_code",
    async [Symbol.asyncDispose]() {
      api[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  });
}, { backend: "vm" });
