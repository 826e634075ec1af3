/**
 * The product's elector and client-go's on one Lease of a real API server, with their real times (15, 10
 * and 2 s): releases, kills, freezes, outages, a deleted Lease and clocks that are set.
 *
 * Runs by itself: `deno run -A tests/kubernetes/leadership.ts`.
 */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/clock.ts";
import { createReport } from "../e2e/report.ts";
import { createKubeClient } from "../support/kube_client.ts";
import { LEASE } from "../support/lease_cluster.ts";
import { type Peers, startPeers } from "../support/peers.ts";
import { type StallProxy, startStallProxy } from "../support/stall_proxy.ts";
import { stopSignal } from "../support/stop_signal.ts";
import { CLIENT_GO_WAIT_MS, gaps, openRing, overlaps, type Ring, type Rival } from "./rivals.ts";
import type { Stage } from "./stage.ts";

const LEASE_MS = 15_000;
const RENEW_DEADLINE_MS = 10_000;
const FREEZE_MS = 20_000;
/** What a busy machine may add. */
const SLACK_MS = 1_000;

const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;

interface Ground extends Pick<Stage, "report" | "signal"> {
  readonly peers: Peers;
}

/**
 * All checks of the election, each in a line, on an API server of its own: two namespaces side by
 * side, then an outage of all. The contract of the store is a part of `contract`.
 */
export async function checkLeadership(
  { report, signal }: Pick<Stage, "report" | "signal">,
): Promise<void> {
  await using peers = await startPeers({ which: ["kube", "elector"], say: report.say, signal });
  const stage: Ground = { peers, report, signal };
  using client = await createKubeClient(peers.kube);
  await using releases = await openRing({ peers, client, namespace: "election-releases" });
  await using crashes = await openRing({ peers, client, namespace: "election-crashes" });
  const address = { hostname: "127.0.0.1", port: peers.kube.port };
  await using proxy = startStallProxy(address);
  const both: (Rival | undefined)[] = await Promise.all([
    checkReleases(releases, stage),
    checkCrashes(crashes, { ...stage, proxy }),
  ]);
  await checkOutage(releases, { ...stage, leader: both[0] });
  for (const ring of [releases, crashes]) {
    await report.check(`${ring.namespace}: never two at a time`, async () => {
      assert.deepEqual(await overlaps(ring), []);
      const effects = await Promise.all(
        ring.rivals.map(async (rival) =>
          (await rival.said()).filter(({ event }) => event === "effect").length
        ),
      );
      const count = effects.reduce((sum, n) => sum + n, 0);
      assert.ok(count > 100, `only ${count} effects`);
      return `0 overlaps in ${count} effects of ${ring.rivals.length} contenders`;
    });
    await report.check(`${ring.namespace}: leaseTransitions without a gap`, () => {
      assert.deepEqual(gaps(ring), []);
      const numbers = ring.history.map(({ transitions }) => transitions);
      return Promise.resolve(`${Math.min(...numbers)} to ${Math.max(...numbers)}`);
    });
  }
}

/** Clean stops, freezes, a deleted Lease, clocks; resolves to the last leader. */
async function checkReleases(ring: Ring, stage: Ground): Promise<Rival | undefined> {
  const { report, peers, signal } = stage;
  const first = await ring.ours("releases-0");
  await first.heard("started");
  const go = await ring.clientGo("client-go-1");
  await report.check("clean stop of ours: client-go leads", async () => {
    const { taken, released } = await release(ring, first, go);
    assert.equal(await first.ended(), 0);
    assert.ok(taken - released < CLIENT_GO_WAIT_MS + SLACK_MS);
    return `${seconds(taken - released)} after the release, by its own retry of 2.0 to 4.4 s`;
  });
  let leader = await ring.ours("releases-1");
  await standsBy(ring, leader);
  await report.check("clean stop of client-go: ours leads in less than 2 s", async () => {
    const { taken, released } = await release(ring, go, leader);
    assert.ok(taken - released < 2_000, seconds(taken - released));
    return `${seconds(taken - released)} after the release`;
  });
  const second = await ring.ours("releases-2");
  await standsBy(ring, second);
  await report.check("clean stop of ours: ours leads in less than 2 s", async () => {
    const asked = Date.now();
    const { taken, released } = await release(ring, leader, second);
    assert.ok(taken - asked < 2_000, seconds(taken - asked));
    return `${seconds(taken - asked)} after SIGTERM, ${
      seconds(taken - released)
    } after the release`;
  });
  leader = second;
  const goAgain = await ring.clientGo("client-go-2");
  await report.check(
    "ours frozen for 20 s: replaced, and does nothing when it is woken",
    async () => {
      const frozen = leader.freeze();
      await systemClock.sleep(FREEZE_MS, signal);
      const taken = await goAgain.heard("started", frozen, LEASE_MS);
      const woken = leader.wake();
      const lost = await leader.heard("lost", woken);
      const after = (await leader.said()).filter(({ at, event }) =>
        at >= woken && event === "effect"
      );
      assert.deepEqual(after, []);
      assert.equal(await leader.ended(), 3);
      return `replaced after ${seconds(taken.at - frozen)}; woken, it ended after ` +
        `${lost.at - woken} ms with 0 effects`;
    },
  );
  const third = await ring.ours("releases-3");
  await standsBy(ring, third);
  await report.check(
    "a Lease deleted under client-go: ours, which waits, leaves it alone",
    async () => {
      const at = Date.now();
      await peers.kube.kubectl(["delete", "lease", LEASE.name, "-n", ring.namespace]);
      const gone = await ring.became("gone", ({ kind }) => kind === "deleted", at);
      const anew = await ring.became("the Lease anew", ({ kind }) => kind === "stands", gone.at);
      assert.equal(anew.holder, goAgain.id);
      return `client-go made it anew after ${seconds(anew.at - gone.at)}`;
    },
  );
  await report.check("client-go frozen for 20 s: ours leads in less than 20 s", async () => {
    const frozen = goAgain.freeze();
    const taken = await third.heard("started", frozen, FREEZE_MS + CLIENT_GO_WAIT_MS);
    await systemClock.sleep(Math.max(0, frozen + FREEZE_MS - Date.now()), signal);
    const woken = goAgain.wake();
    // What it does until it notices is its own; ours measures itself (the product checks each effect).
    const stepped = await goAgain.heard("stopped", woken);
    goAgain.out.push({ from: woken, to: stepped.at + 1 });
    assert.ok(taken.at - frozen < LEASE_MS + 5_000, seconds(taken.at - frozen));
    return `${seconds(taken.at - frozen)}; woken, client-go believed for ${
      stepped.at - woken
    } ms more`;
  });
  leader = third;
  await goAgain.stop();
  const fourth = await ring.ours("releases-4");
  await standsBy(ring, fourth);
  await report.check(
    "a Lease deleted under our leader: made anew, nothing changes hands",
    async () => {
      const waits: number[] = [];
      for (let i = 0; i < 3; i++) {
        const before = ring.history.at(-1) ?? assert.fail();
        assert.equal(before.holder, leader.id);
        const at = Date.now();
        await peers.kube.kubectl(["delete", "lease", LEASE.name, "-n", ring.namespace]);
        const gone = await ring.became("gone", ({ kind }) => kind === "deleted", at);
        const anew = await ring.became("the Lease anew", ({ kind }) => kind === "stands", gone.at);
        assert.deepEqual([anew.holder, anew.transitions], [leader.id, before.transitions]);
        waits.push(anew.at - gone.at);
        await ring.became("a renewal", ({ holder }) => holder === leader.id, anew.at + 1);
      }
      return `made anew after ${waits.join(", ")} ms`;
    },
  );
  await report.check("wall clocks an hour on and back: nothing changes", async () => {
    const since = Date.now();
    for (
      const [rival, direction] of [[leader, "on"], [fourth, "back"], [leader, "back"]] as const
    ) {
      rival.setClock(direction);
      await systemClock.sleep(6_000, signal);
    }
    leader.setClock("back");
    await systemClock.sleep(LEASE_MS + 3_000, signal);
    const states = ring.history.filter(({ at }) => at >= since);
    const numbers = new Set(states.map(({ holder, transitions }) => `${holder} ${transitions}`));
    assert.equal(numbers.size, 1);
    return `${states.length} renewals, one holder, ${seconds(Date.now() - since)}`;
  });
  await fourth.stop();
  return leader;
}

/** Kills, a restart in the same Pod, and a leader whose way to the API server is cut. */
async function checkCrashes(
  ring: Ring,
  stage: Ground & { readonly proxy: StallProxy },
): Promise<undefined> {
  const { report, proxy, signal } = stage;
  const first = await ring.ours("crashes-0");
  await first.heard("started");
  const go = await ring.clientGo("client-go-1");
  await report.check("ours killed: client-go leads", async () => {
    const at = await first.kill();
    const taken = await go.heard("started", at);
    assert.ok(taken.at - at < LEASE_MS + 2 * CLIENT_GO_WAIT_MS + SLACK_MS, seconds(taken.at - at));
    return `${seconds(taken.at - at)} after the kill`;
  });
  const second = await ring.ours("crashes-1");
  await standsBy(ring, second);
  await report.check("client-go killed: ours leads in less than 20 s", async () => {
    const at = await go.kill();
    const taken = await second.heard("started", at);
    assert.ok(taken.at - at < LEASE_MS + 5_000, seconds(taken.at - at));
    return `${seconds(taken.at - at)} after the kill`;
  });
  let leader = await ring.ours("crashes-1", { server: `https://127.0.0.1:${proxy.port}` });
  await report.check(
    "restarted under its HOSTNAME: it waits like any other, and leads",
    async () => {
      const before = ring.history.at(-1) ?? assert.fail();
      const at = await second.kill();
      const taken = await leader.heard("started", at);
      assert.ok(taken.at - at > LEASE_MS - 3_000, `after ${seconds(taken.at - at)} already`);
      assert.ok(taken.at - at < LEASE_MS + 5_000, seconds(taken.at - at));
      assert.equal(ring.history.at(-1)?.transitions, before.transitions + 1);
      return `${seconds(taken.at - at)} after the kill, transitions raised by one`;
    },
  );
  await report.check("the way to the API server silent for 5 s: ours goes on", async () => {
    proxy.stalled = true;
    await systemClock.sleep(5_000, signal);
    proxy.stalled = false;
    const on = Date.now();
    await ring.became("a renewal", ({ holder }) => holder === leader.id, on);
    const said = await leader.said();
    assert.ok(!said.some(({ event }) => event === "lost"));
    return `renewed again ${seconds((ring.history.at(-1)?.at ?? on) - on)} later`;
  });
  const goAgain = await ring.clientGo("client-go-2");
  await report.check(
    "the way to the API server silent for good: ours stops before others lead",
    async () => {
      const renewed = await ring.became("a renewal", () => true, Date.now());
      proxy.stalled = true;
      const lost = await leader.heard("lost", renewed.at);
      const taken = await goAgain.heard("started", renewed.at);
      const last = (await leader.said()).filter(({ event }) => event === "effect").at(-1);
      proxy.stalled = false;
      assert.equal(await leader.ended(), 3);
      assert.ok(lost.at - renewed.at < RENEW_DEADLINE_MS + 2_000 + SLACK_MS);
      const margin = taken.at - (last?.at ?? Infinity);
      assert.ok(
        margin > 2_000,
        `only ${seconds(margin)} between its last effect and the next leader`,
      );
      assert.match(lost.why ?? "", /^not renewed for 10 s: /);
      return `lost ${seconds(lost.at - renewed.at)} after a renewal; client-go led ` +
        `${seconds(margin)} after its last effect`;
    },
  );
  leader = await ring.ours("crashes-2");
  await standsBy(ring, leader);
  await release(ring, goAgain, leader);
  await leader.stop();
  return undefined;
}

/** kube-apiserver stops answering: the leader ends in time, and somebody leads soon afterwards. */
async function checkOutage(
  ring: Ring,
  stage: Ground & { readonly leader: Rival | undefined },
): Promise<void> {
  const { report, peers, signal, leader } = stage;
  await report.check(
    "the API server silent for 14 s: the leader ends, the next one waits its time",
    async () => {
      assert.ok(leader !== undefined);
      const next = await ring.ours("releases-5");
      await standsBy(ring, next);
      const pid = Number(
        (await Deno.readTextFile(`${peers.folder}/pids/kube-apiserver`)).split(" ")[0],
      );
      const at = Date.now();
      Deno.kill(pid, "SIGSTOP");
      try {
        await systemClock.sleep(14_000, signal);
      } finally {
        Deno.kill(pid, "SIGCONT");
      }
      const back = Date.now();
      const lost = await leader.heard("lost", at);
      const taken = await next.heard("started", at);
      assert.ok(lost.at - at < RENEW_DEADLINE_MS + SLACK_MS, seconds(lost.at - at));
      assert.ok(taken.at - back < LEASE_MS + 5_000, seconds(taken.at - back));
      await next.stop();
      return `lost ${seconds(lost.at - at)} after it fell silent; led again ` +
        `${seconds(taken.at - back)} after it was back`;
    },
  );
}

/** Until `rival` has seen the leader renew: then it stands by. */
async function standsBy(ring: Ring, rival: Rival): Promise<void> {
  const since = Date.now();
  const first = await ring.became("a renewal", ({ holder }) => holder !== rival.id, since);
  await ring.became("another renewal", () => true, first.at + 1);
}

/** Stops `from`; when the Lease was free, and when `to` led. */
async function release(ring: Ring, from: Rival, to: Rival) {
  const since = Date.now();
  const stopping = from.stop();
  const free = await ring.became("the release", ({ holder }) => holder === "", since);
  const started = await to.heard("started", since);
  await stopping;
  return { released: free.at, taken: started.at };
}

/** Runs the checks by themselves and resolves to the exit code. */
export async function main(print: (line: string) => void): Promise<number> {
  const signal = stopSignal();
  const report = createReport(print);
  await report.attempt(
    "the election tests",
    () => checkLeadership({ report, signal }),
  );
  print(`${report.passed} passed, ${report.failed} failed, 0 skipped`);
  return report.failed === 0 ? 0 : 1;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) Deno.exit(await main(print));
