/**
 * Two whole controllers, each behind recording proxies of its own, and client-go's contender on their
 * Lease: released, killed, frozen, cut off, with a deleted Lease and a wall clock that is set, while
 * jobs come in. What left each process, and when, is told by the proxies alone.
 */
import assert from "node:assert/strict";
import { eventually } from "../support/eventually.ts";
import { LEASE } from "../support/lease_cluster.ts";
import { NAMESPACE } from "./cluster.ts";
import { startFlow } from "./flow.ts";
import { followLease, transitionGaps } from "./lease_history.ts";
import { openOutside } from "./outside.ts";
import { CLIENT_GO_WAIT_MS, clientGoCommand, layContender, startRival } from "./rivals.ts";
import { startSession } from "./session.ts";
import type { Stage } from "./stage.ts";
import { createTroupe, type Troupe } from "./troupe.ts";

const LEASE_MS = 15_000;
const CRASH_MS = LEASE_MS + 5_000;
const CLEAN_MS = 2_000;
const FREEZE_MS = 20_000;
/** What a busy machine may add where nothing is promised. */
const SLACK_MS = 1_000;
/** An answer of FetchTask without a task is shorter. */
const TASK_BYTES = 200;
const PRELOAD = "tests/kubernetes/wall_clock.ts";

const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

/** All of the plays, then what is to be true of all of them. */
export async function checkHandover(stage: Stage): Promise<void> {
  const { cluster, report, replicas } = stage;
  const { peers, client } = cluster;
  await using lease = followLease(client, NAMESPACE.executors);
  await using first = await openOutside(peers);
  await using second = await openOutside(peers);
  const env = {
    ADMIN_ADVERTISE: "$(POD_IP):8080",
    POD_CAPACITY: "6",
  };
  const preload = [PRELOAD];
  await using session = await startSession(stage, { preload, env: { ...env, ...first.env } });
  session.names.push(await replicas.add({ preload, env: { ...env, ...second.env } }));
  const [one = "", other = ""] = session.names;
  const troupe = createTroupe(stage, { lease, outsides: new Map([[one, first], [other, second]]) });
  await using flow = startFlow(stage);

  await report.check(
    "two replicas behind proxies of their own: one leads, one stands by",
    async () => {
      await flow.succeeded(2);
      const { leader } = await troupe.cast();
      return `"${leader}" leads, ${await troupe.standbyServes()}`;
    },
  );
  await release(stage, troupe);
  await release(stage, troupe);
  await crash(stage, troupe);
  await freeze(stage, troupe);
  await freezeInFetch(stage, troupe);
  await outage(stage, troupe);
  await contender(stage, troupe);
  await deletions(stage, troupe);
  await wallClocks(stage, troupe);
  await report.check("jobs that came in all the time: every one succeeds", async () => {
    const counted = await flow.end();
    return `${counted} jobs`;
  });
  await verdict(stage, troupe);
}

async function release({ report }: Stage, troupe: Troupe): Promise<void> {
  await report.check(
    "clean stop: the other one leads in less than 2 s, and nobody idles longer",
    async () => {
      const { leader, standby } = await troupe.cast();
      const again = await troupe.life(leader);
      const at = troupe.send(leader, "SIGTERM");
      const { handover } = await troupe.takenBy(standby, at);
      const { to, from } = handover;
      const released = from.released ?? assert.fail("the Lease was never given back");
      assert.ok(to.from - at < CLEAN_MS, `taken ${seconds(to.from - at)} after SIGTERM`);
      const idle = (handover.first ?? Infinity) - Math.max(at, handover.last ?? 0);
      assert.ok(idle < CLEAN_MS, `nobody acted for ${seconds(idle)}`);
      const { exitCode } = await again.ended();
      assert.equal(exitCode, 0);
      return `released ${seconds(released - at)} after SIGTERM, taken ${
        seconds(to.from - released)
      } ` +
        `later; ${troupe.tell(handover)}; ${await troupe.standbyServes()}`;
    },
  );
}

async function crash({ report }: Stage, troupe: Troupe): Promise<void> {
  await report.check(
    "killed: the other one acts in less than 20 s, not the restarted one",
    async () => {
      const { leader, standby } = await troupe.cast();
      const again = await troupe.life(leader);
      const at = troupe.send(leader, "SIGKILL");
      const { handover } = await troupe.takenBy(standby, at);
      const ms = (handover.first ?? Infinity) - at;
      assert.ok(ms < CRASH_MS, seconds(ms));
      assert.equal((await again.ended()).exitCode, 137);
      return `${seconds(ms)} after the kill; ${
        troupe.tell(handover)
      }; restarted under its HOSTNAME, ` +
        await troupe.standbyServes();
    },
  );
}

async function freeze({ report }: Stage, troupe: Troupe): Promise<void> {
  await report.check(
    "frozen for 20 s: replaced, woken it does nothing and ends with 3",
    async () => {
      const { leader, standby } = await troupe.cast();
      const again = await troupe.life(leader);
      const at = troupe.send(leader, "SIGSTOP");
      try {
        const { handover } = await troupe.takenBy(standby, at);
        const ms = (handover.first ?? Infinity) - at;
        assert.ok(ms < CRASH_MS, seconds(ms));
        await pass(at + FREEZE_MS - Date.now());
        const woken = troupe.send(leader, "SIGCONT");
        const { exitCode, ended } = await again.ended();
        assert.equal(exitCode, 3);
        await troupe.saidLost(leader, at);
        const after = troupe.effects(leader).filter((effect) => effect.at >= woken);
        const acted = after.filter((effect) => effect.kind === "effect");
        assert.deepEqual(acted, []);
        return `replaced after ${seconds(ms)}; ended with 3 ${
          ended - woken
        } ms after it was woken; ` +
          `${troupe.tell(handover)}; ${await troupe.standbyServes()}`;
      } finally {
        troupe.send(leader, "SIGCONT");
      }
    },
  );
}

/** Gitea's answer with a task is on its way when the leader is frozen: that task is nobody else's. */
async function freezeInFetch({ report }: Stage, troupe: Troupe): Promise<void> {
  await report.check(
    "frozen while a task is on its way to it: woken it stores that task, and nothing else",
    async () => {
      const { leader, standby } = await troupe.cast();
      const again = await troupe.life(leader);
      using task = troupe.outside(leader).gitea.hold(({ name, answer }) =>
        name === "FetchTask" && (answer?.body.length ?? 0) > TASK_BYTES
      );
      await Promise.race([task.reached, pass(60_000)]);
      assert.ok(task.count > 0, "no task was fetched within 60 s");
      const at = troupe.send(leader, "SIGSTOP");
      try {
        const { handover } = await troupe.takenBy(standby, at);
        await pass(at + FREEZE_MS - Date.now());
        task.release();
        // It is in the frozen process's socket then.
        await pass(500);
        const woken = troupe.send(leader, "SIGCONT");
        const { exitCode, ended } = await again.ended();
        assert.equal(exitCode, 3);
        await troupe.saidLost(leader, at);
        const after = troupe.effects(leader).filter((one) => one.at >= woken && one.at <= ended);
        const kinds = after.map(({ kind }) => kind).filter((kind) => kind !== "own label off");
        assert.deepEqual(kinds, Array.from({ length: task.count }, () => "store"));
        const stored = after.findLast(({ kind }) => kind === "store")?.at ?? NaN;
        return `${task.count} stored ${
          Math.round(stored - woken)
        } ms after it was woken, ended with 3 ` +
          `after ${ended - woken} ms; ${troupe.tell(handover)}`;
      } finally {
        troupe.send(leader, "SIGCONT");
      }
    },
  );
}

async function outage({ report }: Stage, troupe: Troupe): Promise<void> {
  await report.check(
    "cut off from the API server: it has ceased to act before another leads, and ends with 3",
    async () => {
      const { leader, standby } = await troupe.cast();
      const again = await troupe.life(leader);
      const { api } = troupe.outside(leader);
      const at = Date.now();
      api.cut = true;
      try {
        const { handover } = await troupe.takenBy(standby, at);
        const ms = (handover.first ?? Infinity) - at;
        assert.ok(ms < CRASH_MS, seconds(ms));
        const { exitCode, ended } = await again.ended();
        assert.equal(exitCode, 3);
        await troupe.saidLost(leader, at);
        return `replaced after ${seconds(ms)}, ended with 3 after ${seconds(ended - at)}; ` +
          troupe.tell(handover);
      } finally {
        api.cut = false;
      }
    },
  );
  await report.check("the API server is back: the one that was cut off stands by", async () => {
    return await troupe.standbyServes();
  });
}

async function contender({ report, cluster }: Stage, troupe: Troupe): Promise<void> {
  const { peers } = cluster;
  const name = "client-go-1";
  const [program, ...args] = clientGoCommand(
    { bin: peers.bin, kubeconfig: await layContender(peers) },
    { namespace: NAMESPACE.executors, name },
  );
  const logFile = `${peers.folder}/logs/handover-${name}.log`;
  const go = await startRival({ id: name, kind: "client-go", program, args, logFile });
  await using _process = go.process;
  await go.heard("contending", 0, 60_000);
  await report.check("both frozen: client-go leads, and neither does anything", async () => {
    const { leader, standby } = await troupe.cast();
    const again = await troupe.life(leader);
    const at = troupe.send(leader, "SIGSTOP");
    troupe.send(standby, "SIGSTOP");
    try {
      // Nothing is promised of client-go: a renewal seen late, the Lease, a look that is just over.
      const taken = await go.heard("started", at, LEASE_MS + 2 * CLIENT_GO_WAIT_MS + SLACK_MS);
      await pass(at + FREEZE_MS - Date.now());
      const woken = troupe.send(leader, "SIGCONT");
      troupe.send(standby, "SIGCONT");
      const { exitCode, ended } = await again.ended();
      assert.equal(exitCode, 3);
      await troupe.saidLost(leader, at);
      return `client-go led ${seconds(taken.at - at)} after that; the leader ended with 3 ` +
        `${ended - woken} ms after it was woken`;
    } finally {
      for (const pod of [leader, standby]) troupe.send(pod, "SIGCONT");
    }
  });
  await report.check("both stand by while client-go leads", async () => {
    return await troupe.standbyServes();
  });
  await report.check("clean stop of client-go: one of ours acts in less than 2 s", async () => {
    const at = Date.now();
    const stopping = go.stop();
    const { handover } = await troupe.takenBy(null, at);
    assert.equal(await stopping, 0);
    const released = handover.from.released ?? assert.fail("the Lease was never given back");
    const ms = (handover.first ?? Infinity) - released;
    assert.ok(ms < CLEAN_MS, `first effect ${seconds(ms)} after the release`);
    return `taken ${seconds(handover.to.from - released)} after the release, first effect ` +
      `${seconds(ms)}; ${await troupe.standbyServes()}`;
  });
}

async function deletions({ report, cluster }: Stage, troupe: Troupe): Promise<void> {
  const remove = () =>
    cluster.peers.kube.kubectl([
      "delete",
      "lease",
      LEASE.name,
      "-n",
      NAMESPACE.executors,
      // Administrators may not.
      "--as=system:serviceaccount:kube-system:namespace-controller",
    ]);
  await report.check("a Lease deleted under the leader: made anew, the epoch stays", async () => {
    const { leader } = await troupe.cast();
    const before = await troupe.epochs();
    const transitions = troupe.lease.states.at(-1)?.transitions;
    const waits: number[] = [];
    for (let i = 0; i < 3; i++) {
      const at = Date.now();
      await remove();
      const gone = await troupe.lease.became("gone", ({ kind }) => kind === "deleted", at);
      const stands = ({ kind }: { readonly kind: string }) => kind === "stands";
      const anew = await troupe.lease.became("the Lease anew", stands, gone.at);
      assert.ok(anew.holder.startsWith(`${leader}_`), anew.holder);
      assert.equal(anew.transitions, transitions);
      waits.push(anew.at - gone.at);
      await troupe.lease.became("a renewal", stands, anew.at + 1);
    }
    await troupe.acts(leader, Date.now());
    assert.deepEqual(await troupe.epochs(), before);
    return `made anew after ${waits.join(", ")} ms by the same process, epoch ${before.at(-1)}`;
  });
  await report.check("a Lease deleted with its leader: a new epoch, whoever makes it", async () => {
    const { leader } = await troupe.cast();
    const before = await troupe.epochs();
    const at = troupe.send(leader, "SIGKILL");
    await remove();
    const { handover } = await troupe.takenBy(null, at);
    const ms = (handover.first ?? Infinity) - at;
    assert.ok(ms < CRASH_MS, seconds(ms));
    await eventually(async () => (await troupe.epochs()).length > before.length, {
      what: "the next epoch",
      timeoutMs: 10_000,
    });
    const after = await troupe.epochs();
    assert.ok((after.at(-1) ?? 0) > (before.at(-1) ?? Infinity), `${before} ${after}`);
    const same = handover.to.pod === leader ? "restarted" : "other";
    return `the ${same} one acted after ${seconds(ms)} with epoch ${after.at(-1)}, transitions ` +
      `${handover.to.transitions}; ${await troupe.standbyServes()}`;
  });
}

async function wallClocks({ report }: Stage, troupe: Troupe): Promise<void> {
  await report.check("wall clocks an hour on and back: nothing changes", async () => {
    const { leader, standby } = await troupe.cast();
    const since = Date.now();
    const [epochs, lives] = [await troupe.epochs(), await troupe.restarts()];
    const sets = [[leader, "SIGUSR1"], [standby, "SIGUSR2"], [leader, "SIGUSR2"], [
      leader,
      "SIGUSR2",
    ]] as const;
    for (const [pod, signal] of sets) {
      troupe.send(pod, signal);
      await pass(LEASE_MS / 2);
    }
    await pass(LEASE_MS / 2);
    await troupe.acts(leader, Date.now());
    const served = await troupe.standbyServes();
    const states = troupe.lease.states.filter(({ at }) => at >= since);
    const kinds = new Set(states.map(({ holder, transitions }) => `${holder} ${transitions}`));
    assert.equal(kinds.size, 1);
    assert.deepEqual([await troupe.epochs(), await troupe.restarts()], [epochs, lives]);
    // Both as they were.
    troupe.send(leader, "SIGUSR1");
    troupe.send(standby, "SIGUSR1");
    return `${states.length} renewals of one holder in ${seconds(Date.now() - since)}; ${served}`;
  });
}

/** What holds of everything that was played. */
async function verdict({ report }: Stage, troupe: Troupe): Promise<void> {
  const judged = troupe.judged();
  await report.check("never two at a time, at Gitea, NATS and the API server", () => {
    assert.deepEqual(judged.overlaps, []);
    assert.ok(judged.lateStores > 0, "no task was in flight at a change of the leader");
    assert.ok(judged.effects > 500, `only ${judged.effects} effects`);
    return Promise.resolve(
      `0 overlaps in ${judged.effects} effects and ${judged.handovers.length} changes of the ` +
        `leader; apart from them ${judged.lateStores} stores of tasks in flight, ` +
        `${judged.ownLabels} labels that processes took off their own Pods, and ` +
        `${judged.streams} streams made before anybody led`,
    );
  });
  await report.check("epochs rise by one with each of our leaders", async () => {
    const epochs = await troupe.epochs();
    assert.deepEqual(epochs, epochs.map((_, index) => (epochs[0] ?? 0) + index));
    const ours = troupe.terms().filter(({ pod }) => pod !== null).length;
    assert.equal(epochs.length, ours, "epochs, and terms of our leaders");
    return epochs.join(", ");
  });
  await report.check("leaseTransitions without a gap", () => {
    const { states } = troupe.lease;
    // After the Lease was deleted with its leader whoever makes it has not seen the old one.
    assert.deepEqual(transitionGaps(states, () => true), []);
    const numbers = troupe.terms().map(({ transitions }) => transitions);
    return Promise.resolve(numbers.join(", "));
  });
}
