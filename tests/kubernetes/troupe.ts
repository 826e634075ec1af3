import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { at as valueAt } from "../support/kube_manifests.ts";
import { LISTEN } from "./cluster.ts";
import type { LeaseHistory } from "./lease_history.ts";
import type { Outside } from "./outside.ts";
import type { Stage } from "./stage.ts";
import { type Effect, type Handover, judge, type Judgement, type Term, termsOf } from "./terms.ts";

/** Two replicas behind proxies, and what can be done to them and asked about them. */
export interface Troupe {
  readonly lease: LeaseHistory;
  /**
   * Who leads and acts, and the other one, which stands by; resolves when it has come to that, and
   * rejects when none of ours leads.
   */
  cast(): Promise<{ readonly leader: string; readonly standby: string }>;
  outside(pod: string): Outside;
  effects(pod: string): readonly Effect[];
  terms(): Term[];
  judged(): Judgement;
  /** To the replica's process; gives the time. */
  send(pod: string, signal: Deno.Signal): number;
  /** The process that runs in it now; `ended` resolves when the kubelet has told of its end. */
  life(pod: string): Promise<
    { ended(): Promise<{ readonly exitCode: number; readonly ended: number }> }
  >;
  /** Resolves when that one (null: any of ours) has taken the Lease after `since` and has acted. */
  takenBy(pod: string | null, since: number): Promise<{ readonly handover: Handover }>;
  /** Resolves when it has done something after `since`. */
  acts(pod: string, since: number): Promise<void>;
  /** Resolves when its log says after `since` why it has ended. */
  saidLost(pod: string, since: number): Promise<void>;
  /** Epochs that were begun, in the order of time. */
  epochs(): Promise<number[]>;
  restarts(): Promise<number[]>;
  /**
   * Every replica that does not lead is ready, serves reads (the leader's, where it is ours) and refuses
   * actions with the leader's name; in words.
   */
  standbyServes(): Promise<string>;
  /** The gap of a handover, in words. */
  tell(handover: Handover): string;
}

/** Starting takes that long on a busy machine; nothing is promised of it. */
const READY_MS = 180_000;

/** Makes a {@link Troupe}. */
export function createTroupe(
  stage: Stage,
  { lease, outsides }: {
    readonly lease: LeaseHistory;
    readonly outsides: ReadonlyMap<string, Outside>;
  },
): Troupe {
  const { cluster: { client, kubelet }, installation, replicas } = stage;
  const pods = [...outsides.keys()];
  const outside = (pod: string) => outsides.get(pod) ?? assert.fail(`no proxies of "${pod}"`);
  const effects = (pod: string) => outside(pod).effects(pod);
  const terms = () =>
    termsOf(lease.states, new Map(pods.map((pod) => [pod, outside(pod).leaseWrites()])));
  const judged = () => judge(terms(), new Map(pods.map((pod) => [pod, effects(pod)])));
  const holder = () => lease.states.at(-1)?.holder ?? "";
  const podOf = (name: string) => pods.find((pod) => name.startsWith(`${pod}_`));
  const statusOf = async (pod: string) => {
    const path = `/api/v1/namespaces/${installation.controller}/pods/${pod}`;
    return valueAt(await client.call("GET", path), "status", "containerStatuses", 0);
  };
  const restartsOf = async (pod: string) => Number(valueAt(await statusOf(pod), "restartCount"));

  const asked = async (pod: string, port: number, path: string, init: RequestInit = {}) => {
    const ip = kubelet.pod(pod)?.ip ?? assert.fail(`no Pod "${pod}"`);
    const signal = AbortSignal.timeout(5_000);
    const response = await fetch(`http://${ip}:${port}${path}`, { ...init, signal });
    const text = await response.text();
    const json: unknown = text.startsWith("{") ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, json };
  };
  const oneServes = async (pod: string, leader: string, ours: boolean) => {
    const ready = await asked(pod, LISTEN.health, "/readyz");
    assert.equal(ready.status, 200, `"${pod}" is not ready: ${JSON.stringify(ready.json)}`);
    const read = await asked(pod, LISTEN.admin, "/api/v1/status");
    assert.equal(read.status, 200);
    if (ours) assert.equal(read.headers.get("gdr-answered-by"), leader);
    const refused = await asked(pod, LISTEN.admin, "/api/v1/backends/pod/cordon", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ note: "by a test" }),
    });
    assert.equal(refused.status, 503);
    const { detail } = refused.json as { detail: string };
    assert.ok(detail.startsWith(`Ask the leader: it is "${leader}"`), detail);
  };
  const handoverTo = (pod: string | null, since: number) =>
    judged().handovers.find(({ to, first }) =>
      to.from >= since && first !== null && (pod === null || to.pod === pod)
    );

  const troupe: Troupe = {
    lease,
    outside,
    effects,
    terms,
    judged,
    async cast() {
      await troupe.standbyServes();
      const leader = podOf(holder()) ?? assert.fail(`"${holder()}" leads, none of ours`);
      await troupe.acts(leader, Date.now());
      return { leader, standby: pods.find((pod) => pod !== leader) ?? assert.fail() };
    },
    send(pod, signal) {
      const pid = kubelet.pod(pod)?.pid("controller") ?? assert.fail(`"${pod}" does not run`);
      const at = Date.now();
      try {
        Deno.kill(pid, signal);
      } catch (error) {
        // It has ended by itself.
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
      return at;
    },
    async life(pod) {
      const before = await restartsOf(pod);
      return {
        async ended() {
          const status = await eventually(async () => {
            const status = await statusOf(pod);
            return Number(valueAt(status, "restartCount")) > before && status;
          }, { what: `"${pod}" to be restarted`, timeoutMs: READY_MS });
          const last = valueAt(status, "lastState", "terminated");
          return {
            exitCode: Number(valueAt(last, "exitCode")),
            ended: kubelet.pod(pod)?.endedAt("controller") ?? NaN,
          };
        },
      };
    },
    async takenBy(pod, since) {
      const handover = await eventually(() => handoverTo(pod, since), {
        what: `"${pod ?? "one of ours"}" to lead and to act`,
        timeoutMs: 45_000,
      }).catch((cause) => {
        const told = terms().slice(-4).map((term) => `${term.holder} ${term.from - since}`);
        throw new Error(`${cause}: terms ${told.join(", ")}`);
      });
      return { handover };
    },
    async acts(pod, since) {
      await eventually(() => effects(pod).some((one) => one.kind === "effect" && one.at > since), {
        what: `an effect of "${pod}"`,
        timeoutMs: 20_000,
      });
    },
    async saidLost(pod, since) {
      await eventually(
        async () =>
          (await replicas.log(pod)).some((line) =>
            Date.parse(String(line.time)) >= since &&
            JSON.stringify(line).includes("scheduler leadership lost")
          ),
        { what: `"scheduler leadership lost" of "${pod}"`, timeoutMs: 10_000 },
      );
    },
    async epochs() {
      const lines = (await Promise.all(pods.map((pod) => replicas.log(pod)))).flat();
      return lines.filter(({ msg }) => msg === "took over")
        .sort((a, b) => Date.parse(String(a.time)) - Date.parse(String(b.time)))
        .map(({ epoch }) => Number(epoch));
    },
    restarts: () => Promise.all(pods.map(restartsOf)),
    async standbyServes() {
      const serves = async () => {
        const leader = holder();
        assert.notEqual(leader, "", "nobody leads");
        const standbys = pods.filter((pod) => pod !== podOf(leader));
        for (const pod of standbys) await oneServes(pod, leader, podOf(leader) !== undefined);
        assert.equal(holder(), leader, "the leader changed meanwhile");
        return standbys.length;
      };
      let last: unknown;
      const count = await eventually(() => serves().catch((error) => void (last = error)), {
        what: "the standby to be ready, to serve and to refuse",
        timeoutMs: READY_MS,
        everyMs: 250,
      }).catch((cause) => {
        throw new Error(`${cause}: ${last}`);
      });
      return `${count} ready as standby, reads served, action refused with the leader's name`;
    },
    tell: ({ last, first }) =>
      last === null || first === null
        ? "no two effects to compare"
        : `${seconds(first - last)} from its last effect to the first of the next`,
  };
  return troupe;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}
