import assert from "node:assert/strict";
import { EXECUTOR_ENTRYPOINT } from "../../backends/vm/entrypoint.ts";
import { quantile } from "../support/quantile.ts";
import { startVmController } from "./controller.ts";
import { type Guest, startPlatform } from "./platform.ts";
import { type Played, playJob } from "./player.ts";
import { openSandboxObjects } from "./sandbox_objects.ts";
import type { Stage } from "./stage.ts";

const JOBS = 20;

/** One job from Gitea to success by way of a sandbox, then twenty in a row. */
export async function checkChain(stage: Stage): Promise<void> {
  const { peers, report, repository } = stage;
  const objects = openSandboxObjects(peers);
  await using platform = startPlatform(stage);
  const started = performance.now();
  await using controller = await startVmController(stage);
  report.say(`the controller is ready after ${Math.round(performance.now() - started)} ms`);

  const play = (workflow: string) => playJob({ stage, platform, controller }, workflow);

  const first = await report.check(
    "a whole job: Gitea, sandbox, SPIRE, mTLS, success",
    async () => {
      const { log, guest } = await play("hello.yaml");
      const identity = `spiffe://${peers.spire.trustDomain}/ci/${repository}/hello`;
      assert.match(log, new RegExp(`user 2000, identity ${identity}`));
      assert.match(log, new RegExp(`SPIFFE ID:\\s+${identity}`));
      assert.match(log, /no capability/);
      assert.match(log, /Gitea answers/);
      assert.equal(guest.spiffeId, identity, "the entry that was asked for");
      checkStored(stage, guest);
      return `identity ${identity}, bound ${
        ms((guest.boundAt ?? NaN) - guest.seenAt)
      } after its sandbox was there`;
    },
  );
  if (!first) return;
  await report.check(`${JOBS} jobs in a row succeed, one sandbox each`, async () => {
    const before = platform.guests().length;
    const jobs: Played[] = [];
    for (let index = 0; index < JOBS; index++) jobs.push(await play("quick.yaml"));
    const guests = platform.guests().slice(before);
    assert.equal(guests.length, JOBS, "sandboxes made");
    assert.deepEqual(guests.map(({ exitCode }) => exitCode), guests.map(() => 0), "exit codes");
    const bound = guests.map(({ boundAt, seenAt }) => (boundAt ?? NaN) - seenAt);
    return `dispatch to success ${spread(jobs.map(({ jobMs }) => jobMs))}; sandbox to identity ${
      spread(bound)
    }; success to sandbox gone ${spread(jobs.map(({ goneMs }) => goneMs))}`;
  });
  await report.check(`nothing is left of ${JOBS + 1} jobs`, async () => {
    assert.deepEqual((await objects.list()).map(({ name }) => name), [], "sandboxes");
    assert.equal(platform.entries(), 0, "entries");
    const shown = await peers.spire.server(["entry", "show"]);
    assert.doesNotMatch(shown, new RegExp(`/ci/${repository}/`), "entries of SPIRE");
    assert.deepEqual(platform.faults, []);
    return "sandboxes left: 0, entries left: 0";
  });
}

/** What the server stored is what the controller asked for, and holds no credential of Gitea's. */
function checkStored({ base, peers, workloadApi }: Stage, guest: Guest): void {
  const [shell, option, line, ...more] = guest.command;
  assert.deepEqual([shell, option, more], ["/bin/sh", "-c", []]);
  assert.equal(line, `exec /opt/opensandbox/bootstrap.sh ${EXECUTOR_ENTRYPOINT.join(" ")}`);
  const { environment } = guest;
  assert.equal(environment["SPIFFE_ENDPOINT_SOCKET"], `unix://${workloadApi}/spire-agent.sock`);
  const token = Deno.readTextFileSync(`${base.registration}/GITEA_RUNNER_TOKEN`).trim();
  for (const secret of [token, peers.gitea.token, peers.opensandbox.apiKey]) {
    assert.ok(!Object.values(environment).some((value) => value.includes(secret)));
  }
}

function spread(times: readonly number[]): string {
  const at = (share: number) => ms(quantile(times, share));
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, max ${at(1)}`;
}

function ms(time: number): string {
  return `${Math.round(time)} ms`;
}
