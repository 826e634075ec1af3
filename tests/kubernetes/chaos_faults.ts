import {
  chance,
  type Done,
  done,
  type Fault,
  lasting,
  seconds,
  some,
  stopped,
} from "../chaos/faults.ts";
import type { Dose } from "../chaos/schedule.ts";
import { KubeError } from "../support/kube_client.ts";
import type { ChaosGround } from "./chaos_world.ts";
import type { ApiRequest, Treatment } from "./fault_proxy.ts";
import type { NodePod } from "./node_pod.ts";
import { userOf } from "./stage.ts";

/** One way to interfere with a cluster. `run` resolves when it is whole again. */
export interface PodFault extends Pick<Fault, "name" | "weight" | "losesHandOuts"> {
  run(ground: ChaosGround, dose: Dose): Promise<Done>;
}

const isWrite = ({ method }: ApiRequest) => method !== "GET";
const isOfExecutors = ({ path }: ApiRequest) => !path.includes("/leases");
const RUNNER = "ci.ddupan.top/runner";

/** Faults that only Pods and their API server know. */
export const POD_FAULTS: readonly PodFault[] = [
  {
    name: "kube-apiserver killed",
    async run({ stage: { cluster: { peers } } }, { ms }) {
      const before = performance.now();
      Deno.kill(await apiServer(peers.folder), "SIGKILL");
      await lasting(ms);
      await peers.script("kube.sh", "start");
      return done(`back after ${seconds(performance.now() - before)}`);
    },
  },
  {
    name: "kube-apiserver stands still",
    async run({ stage: { cluster: { peers } } }, { ms }) {
      await stopped([await apiServer(peers.folder)], ms);
      return done(seconds(ms));
    },
  },
  treated("answers of the API server lost", {
    weight: 2,
    treat: (request) => isWrite(request) ? { kind: "lose_answer" } : undefined,
  }),
  {
    name: "watches cut",
    weight: 2,
    run: ({ proxy }) => Promise.resolve(done(`${proxy.cutWatches()} watches`)),
  },
  {
    name: "watches expired",
    async run({ proxy }, dose) {
      const random = chance(dose);
      const count = await during(proxy, dose.ms, ({ watch }) => {
        if (!watch || random.next() > dose.share) return undefined;
        return random.next() < 0.5
          ? { kind: "expired_event" }
          : { kind: "refuse", code: 410, reason: "Expired" };
      }, () => proxy.cutWatches());
      return done(`${count} in ${seconds(dose.ms)}`);
    },
  },
  treated("API server throttles", {
    treat: () => ({ kind: "refuse", code: 429, reason: "TooManyRequests" }),
  }),
  treated("API server fails", {
    weight: 2,
    treat: (_request, code) => ({
      kind: "refuse",
      code,
      reason: code === 500 ? "InternalError" : "ServiceUnavailable",
    }),
  }),
  {
    name: "Pods deleted by hand",
    weight: 2,
    async run(ground, dose) {
      return await onSome(ground, dose, async ({ name, namespace }) => {
        const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
        await ground.stage.cluster.client.call("DELETE", path, {}).catch(ifAway);
      });
    },
  },
  {
    name: "Pods evicted",
    run: (ground, dose) =>
      onSome(ground, dose, ({ name }) => ground.stage.cluster.kubelet.evict(name).catch(() => {})),
  },
  {
    name: "node gone",
    async run(ground, dose) {
      const { cluster: { client, kubelet } } = ground.stage;
      return await onSome(ground, dose, async ({ name, namespace, uid }) => {
        await kubelet.vanish(name).catch(() => {});
        await lasting(dose.ms);
        // The cluster's own garbage collector, once the Node is deleted.
        const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
        const body = { gracePeriodSeconds: 0, preconditions: { uid } };
        await client.call("DELETE", path, body).catch(ifAway);
      });
    },
  },
  {
    name: "image cannot be pulled",
    async run({ stage: { cluster: { kubelet } } }, { ms }) {
      kubelet.holdBy(() => ({ kind: "image_pull" }));
      await lasting(ms);
      kubelet.holdBy(() => undefined);
      return done(seconds(ms));
    },
  },
  {
    name: "no room on any node",
    async run({ stage: { cluster: { kubelet } } }, { ms }) {
      kubelet.holdBy(() => ({ kind: "unschedulable", message: "0/1 nodes are available." }));
      await lasting(ms);
      kubelet.holdBy(() => undefined);
      return done(seconds(ms));
    },
  },
  {
    name: "Pods edited",
    async run({ stage, executors }, dose) {
      const { cluster: { peers }, installation } = stage;
      const as = `--as=${userOf(installation.controller, "controller")}`;
      const pods = await executors.choose(dose.count, chance(dose));
      const label = async (labels: readonly string[]) => {
        for (const { name, namespace } of pods) {
          await peers.kube.kubectl(["label", "pod", name, "-n", namespace, as, ...labels])
            .catch(() => {}); // It has ended meanwhile, or the API server is away.
        }
      };
      await label([`${RUNNER}-`, "team=red"]);
      await lasting(Math.min(dose.ms, 2_000));
      await label([`${RUNNER}=true`, "team-"]);
      return done(pods.map(({ name }) => name).join(", "));
    },
  },
  {
    // Before its SVID the job would wait for the claim timeout, which is longer than a round may stand
    // still.
    name: "identity entries deleted by hand",
    async run({ stage: { cluster: { client } }, executors }, dose) {
      const names = some(await executors.used(), dose.count, chance(dose));
      for (const name of names) {
        const path = `/apis/spire.spiffe.io/v1alpha1/clusterstaticentries/${name}`;
        await client.call("DELETE", path, {}).catch(ifAway);
      }
      return done(names.join(", "));
    },
  },
];

/** A fault that befalls some of the requests about executors for a while. */
function treated(name: string, { treat, weight = 1 }: {
  readonly treat: (request: ApiRequest, code: 500 | 503) => Treatment | undefined;
  readonly weight?: number;
}): PodFault {
  return {
    name,
    weight,
    async run({ proxy }, dose) {
      const random = chance(dose);
      const count = await during(proxy, dose.ms, (request) => {
        const hit = random.next() < dose.share;
        const code = random.next() < 0.5 ? 500 : 503;
        return hit && isOfExecutors(request) ? treat(request, code) : undefined;
      });
      return done(`${count} in ${seconds(dose.ms)}`);
    },
  };
}

/** Several of them may be at work at a time: the first that has something to say wins. */
async function during(
  proxy: ChaosGround["proxy"],
  ms: number,
  rule: ChaosGround["proxy"]["rule"],
  begun: () => void = () => {},
): Promise<number> {
  let count = 0;
  let over = false;
  const earlier = proxy.rule;
  proxy.rule = (request) => {
    const treatment = over ? undefined : rule(request);
    if (treatment !== undefined) count++;
    return treatment ?? earlier(request);
  };
  begun();
  await lasting(ms);
  over = true;
  return count;
}

async function onSome(
  { executors }: ChaosGround,
  dose: Dose,
  act: (pod: NodePod) => Promise<unknown>,
): Promise<Done> {
  const victims = await executors.choose(dose.count, chance(dose));
  await Promise.all(victims.map(act));
  const killed = await executors.afterTheirEnd(victims);
  return { note: victims.map(({ name }) => name).join(", "), killed };
}

async function apiServer(folder: string): Promise<number> {
  return Number((await Deno.readTextFile(`${folder}/pids/kube-apiserver`)).split(" ")[0]);
}

/** It has ended meanwhile, or the API server is away or stands still: then it befalls nobody. */
function ifAway(error: unknown): void {
  if (error instanceof KubeError && error.status < 500 && ![404, 409].includes(error.status)) {
    throw error;
  }
}
