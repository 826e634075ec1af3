import type { Backend } from "../../controller/backend.ts";
import type { ExecutorName } from "../../controller/model/ids.ts";
import { createProcessBackend } from "../../backends/process/process_backend.ts";
import type { UserIds } from "../../backends/process/users.ts";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeProcessIdentity } from "../fakes/process_identity.ts";
import { eventually } from "../support/eventually.ts";
import { testUserIds } from "../support/user_ids.ts";
import { backendContract } from "./backend_contract.ts";
import type { BackendWorld } from "./backend_suite.ts";

/** Stands in for the gate: notes its environment, then waits to be told how to end. */
const PROGRAM = `
env -0 >environment.new && mv environment.new environment
trap 'exit 18' TERM
while [ ! -f end ]; do sleep 0.02; done
cat line
exit "$(cat end)"
`;

async function setup(userIds: UserIds | null): Promise<BackendWorld> {
  const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "gdr-backend-" });
  await Deno.chmod(directory, 0o711);
  const identity = createFakeProcessIdentity();
  const opened: (Backend & AsyncDisposable)[] = [];
  const open = () => {
    const backend = createProcessBackend({
      name: "pod",
      directory,
      command: ["sh", "-c", PROGRAM],
      environment: {},
      identity,
      userIds,
      clock: systemClock,
      logger: silentLogger,
      graceMs: 1000,
      pollMs: 20,
    });
    opened.push(backend);
    return backend;
  };
  const home = (name: ExecutorName) => `${directory}/${name}/home`;
  const { signal } = new AbortController();
  return {
    backend: open(),
    reopen: () => Promise.resolve(open()),
    async end(name, { code, line }) {
      await Deno.writeTextFile(`${home(name)}/line`, `${line}\n`);
      await Deno.writeTextFile(`${home(name)}/end.new`, String(code));
      await Deno.rename(`${home(name)}/end.new`, `${home(name)}/end`);
    },
    corrupt: (name) => Deno.writeTextFile(`${directory}/${name}/meta.json`, "{"),
    boundTo: (name) => Promise.resolve(identity.bound.get(name)?.spiffeId ?? null),
    async environmentOf(name) {
      const path = `${home(name)}/environment`;
      const text = await eventually(() => Deno.readTextFile(path), { what: "the environment" });
      return Object.fromEntries(
        text.split("\0").filter((setting) => setting !== "").map((setting) => {
          const equals = setting.indexOf("=");
          return [setting.slice(0, equals), setting.slice(equals + 1)];
        }),
      );
    },
    async [Symbol.asyncDispose]() {
      const last = open();
      for (const executor of await last.list({ signal })) await last.delete(executor, { signal });
      for (const backend of opened) await backend[Symbol.asyncDispose]();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

const WITHOUT = ["lost answers", "bindings that can be seen"] as const;

backendContract("process backend", () => setup(null), {
  ignore: Deno.build.os !== "linux",
  without: WITHOUT,
});

backendContract(
  "process backend with a user per executor",
  () => setup(testUserIds(0, 64)),
  { ignore: Deno.build.os !== "linux" || Deno.uid() !== 0, without: WITHOUT },
);
