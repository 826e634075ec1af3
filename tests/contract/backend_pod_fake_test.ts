import { createPodBackend } from "../../backends/pod/pod_backend.ts";
import { podOf } from "../../backends/pod/pod.ts";
import { systemClock } from "../../lib/clock.ts";
import { objectOrEmpty } from "../../lib/json_object.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createFakeCluster } from "../fakes/cluster.ts";
import { containerEnvironment, spiffeIdOf } from "../support/executor_pod.ts";
import { backendContract } from "./backend_contract.ts";
import { POD_IDENTITY, POD_SETTINGS } from "../support/pod_settings.ts";

backendContract("pod backend on the cluster in memory", () => {
  const cluster = createFakeCluster();
  const open = () =>
    createPodBackend({
      cluster,
      pods: POD_SETTINGS,
      identity: POD_IDENTITY,
      clock: systemClock,
      logger: silentLogger,
      guard() {},
    });
  return Promise.resolve({
    backend: open(),
    reopen: () => Promise.resolve(open()),
    end(name, { code, line }) {
      cluster.terminate(name, { exitCode: code, message: `${line}\n` });
      return Promise.resolve();
    },
    corrupt(name) {
      cluster.edit(name, (pod) => {
        const labels = { "ci.example.org/runner": "true" };
        return { ...pod, metadata: { ...objectOrEmpty(pod.metadata), labels, annotations: 7 } };
      });
      return Promise.resolve();
    },
    boundTo(name) {
      const pod = cluster.pods.get(name);
      const uid = pod === undefined ? undefined : podOf(pod).uid;
      return Promise.resolve(spiffeIdOf(cluster.entries.get(name), uid, 2000));
    },
    unbind(name) {
      cluster.removeEntry(name);
      return Promise.resolve();
    },
    environmentOf: (name) => Promise.resolve(containerEnvironment(cluster.pods.get(name))),
    loseNextAnswer() {
      cluster.faults.loseNextAnswer = "createPod";
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
});
