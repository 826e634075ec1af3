import assert from "node:assert/strict";
import { BackendError } from "../../controller/backend.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { specOf } from "../../tests/contract/backend_suite.ts";
import { createFakeCluster } from "../../tests/fakes/cluster.ts";
import { fc } from "../../tests/support/property.ts";
import { ClusterError, type ClusterErrorCode } from "./cluster.ts";
import { podOf } from "./pod.ts";
import { createPodBackend } from "./pod_backend.ts";
import { POD_IDENTITY, POD_SETTINGS } from "../../tests/support/pod_settings.ts";

const call = { signal: new AbortController().signal };
const CODES: readonly ClusterErrorCode[] = [
  "not_found",
  "already_exists",
  "conflict",
  "forbidden",
  "throttled",
  "unknown_outcome",
];

/** One thing done to one of three tasks; `fault`: what its n-th request meets, before or after it is done. */
const step = fc.record({
  action: fc.constantFrom("create", "bind", "mark", "delete", "list", "vanish"),
  task: fc.constantFrom("1", "2", "3"),
  fault: fc.option(fc.record({
    request: fc.integer({ min: 0, max: 3 }),
    code: fc.constantFrom(...CODES),
    done: fc.boolean(),
  })),
});

Deno.test("Pods and entries are made once and leave nothing, whatever requests fail", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = createFakeClock();
      const cluster = createFakeCluster({ clock });
      const foreign = { name: "foreign", labels: { "ci.example.org/instance": "ffffffffff" } };
      cluster.putEntry({ ...foreign, spec: { selectors: ["k8s:pod-uid:gone"] } });
      const backend = createPodBackend({
        cluster,
        pods: POD_SETTINGS,
        identity: POD_IDENTITY,
        clock,
        logger: silentLogger,
        guard() {},
      });

      const act = async ({ action, task }: (typeof steps)[number]) => {
        const spec = specOf(task, "pod");
        const pod = cluster.pods.get(spec.name);
        const uid = pod === undefined ? "none" : podOf(pod).uid;
        switch (action) {
          case "create":
            return void await backend.create(spec, call);
          case "bind": {
            const found = await backend.find(spec.name, call);
            if (found !== undefined) await backend.bindIdentity(found, spec.assignment, call);
            return;
          }
          case "mark":
            return await backend.markTerminal({ name: spec.name, uid }, call);
          case "delete":
            return await backend.delete({ name: spec.name, uid }, call);
          case "list":
            return void await backend.list(call);
          case "vanish":
            return cluster.remove(spec.name);
          default:
            return action satisfies never;
        }
      };

      for (const each of steps) {
        let request = 0;
        cluster.faults.before = (method) => {
          if (each.fault === null || request++ !== each.fault.request) return Promise.resolve();
          if (each.fault.done) {
            cluster.faults.loseNextAnswer = method;
            return Promise.resolve();
          }
          return Promise.reject(new ClusterError(each.fault.code, "the test wants it"));
        };
        await act(each).catch((error) => assert.ok(error instanceof BackendError, String(error)));
        cluster.faults.loseNextAnswer = null;
        for (const { name, spec } of cluster.entries.values()) {
          if (name === foreign.name) continue;
          // Whoever has an identity has that of its own job.
          const task = name.split("-").at(-1) ?? "";
          assert.equal(spec.spiffeID, specOf(task, "pod").assignment.identity.spiffeId);
        }
      }

      cluster.faults.before = null;
      for (const executor of await backend.list(call)) await backend.delete(executor, call);
      await backend.list(call);
      assert.equal(cluster.pods.size, 0);
      assert.deepEqual([...cluster.entries.keys()], [foreign.name]);
    }),
    { numRuns: 300 },
  );
});
