import assert from "node:assert/strict";
import { systemClock as clock } from "../../lib/clock.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { testUserIds } from "../../tests/support/user_ids.ts";
import { isDead, readStat } from "./proc.ts";
import { endProcesses } from "./processes.ts";

/** Freezes, again and again, every other process of its user: whoever comes to end it, too. */
const FREEZER = `trap "" TERM; while :; do kill -STOP -1; done`;

/** A program of that user; disposing kills it. */
function startAs(userId: number, script: string) {
  const quiet = {
    clearEnv: true,
    cwd: "/",
    stdin: "null",
    stdout: "null",
    stderr: "null",
  } as const;
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", script],
    uid: userId,
    gid: userId,
    ...quiet,
  }).spawn();
  return {
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      try {
        child.kill("SIGKILL");
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
      }
      await child.status;
    },
  };
}

async function stateOf(pid: number): Promise<string> {
  const stat = await readStat(pid);
  return stat === undefined || isDead(stat) ? "dead" : stat.state;
}

Deno.test({
  name: "endProcesses() ends what freezes whoever comes to end it",
  ignore: Deno.uid() !== 0,
  async fn() {
    const { first: userId } = testUserIds(76, 1);
    const { signal } = new AbortController();
    // Each time it is another moment of the killer's life that is met.
    for (let time = 0; time < 5; time++) {
      await using victim = startAs(userId, "exec sleep 600");
      await using freezer = startAs(userId, FREEZER);
      await eventually(async () => await stateOf(victim.pid) === "T", { what: "the victim" });
      await endProcesses({ folder: "/nowhere", leader: null, userId }, {
        graceMs: 0,
        clock,
        signal,
      });
      assert.deepEqual(await Promise.all([victim, freezer].map(({ pid }) => stateOf(pid))), [
        "dead",
        "dead",
      ]);
    }
  },
});
