import { createFakeBackend } from "../fakes/backend.ts";
import { backendContract } from "./backend_contract.ts";

backendContract("fake backend", () => {
  const backend = createFakeBackend();
  return Promise.resolve({
    backend,
    reopen: () => Promise.resolve(backend.reopen()),
    end(name, { code, line }) {
      backend.end(name, { exitCode: code, lastLines: [line] });
      return Promise.resolve();
    },
    corrupt(name) {
      backend.corrupt(name);
      return Promise.resolve();
    },
    boundTo: (name) => Promise.resolve(backend.bound.get(name) ?? null),
    unbind(name) {
      backend.unbind(name);
      return Promise.resolve();
    },
    environmentOf: (name) => Promise.resolve(backend.environments.get(name) ?? {}),
    loseNextAnswer() {
      backend.faults.loseNextAnswer = true;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});
