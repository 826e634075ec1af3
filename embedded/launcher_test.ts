import assert from "node:assert/strict";
import { systemClock as clock } from "../lib/clock.ts";
import { eventually } from "../tests/support/eventually.ts";
import { npxEnded } from "./launcher.ts";

/** Processes named as npm, its shell and `deno task` are; `pid` is the last one's. */
async function launchers() {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/task`, "echo $$ > pid.new; mv pid.new pid; read line\n");
  const shell = `exec 3<&0; (exec -a deno bash task start <&3) & wait`;
  const npm = new Deno.Command("/bin/bash", {
    args: ["-c", `exec -a "npm exec deno" bash -c 'exec 3<&0; bash -c "$1" <&3 & wait' x "$1"`]
      .concat(["x", shell]),
    cwd: directory,
    stdin: "piped",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const pid = await eventually(
    async () => Number(await Deno.readTextFile(`${directory}/pid`).catch(() => "0")) || undefined,
    { what: "the last process" },
  );
  return {
    pid,
    npm,
    async [Symbol.asyncDispose]() {
      // The end of the input ends those who wait for it.
      await npm.stdin.close();
      await npm.status;
      await Deno.remove(directory, { recursive: true });
    },
  };
}

Deno.test("npxEnded() resolves when npx is ended alone", async () => {
  await using chain = await launchers();
  const stop = new AbortController();
  let over = false;
  const { promise: watching, resolve: watches } = Promise.withResolvers<void>();
  const seen: typeof clock = {
    ...clock,
    sleep(ms, signal) {
      watches();
      return clock.sleep(ms, signal);
    },
  };
  const options = { clock: seen, signal: stop.signal, parent: chain.pid };
  const ended = npxEnded(options).then(() => over = true);
  await watching;
  assert.equal(over, false);
  chain.npm.kill("SIGKILL");
  await ended;
  assert.equal(stop.signal.aborted, false);
});

Deno.test("npxEnded() watches nobody when this process was started in another way", async () => {
  const stop = new AbortController();
  let over = false;
  // The test's own process: the tests themselves may run below npx.
  const options = { clock, signal: stop.signal, parent: Deno.pid };
  const ended = npxEnded(options).then(() => over = true);
  await clock.sleep(0);
  assert.equal(over, false);
  stop.abort();
  await ended;
});

Deno.test("npxEnded() resolves when it is aborted while it watches", async () => {
  await using chain = await launchers();
  const stop = new AbortController();
  const seen: typeof clock = {
    ...clock,
    sleep(ms, signal) {
      stop.abort();
      return clock.sleep(ms, signal);
    },
  };
  await npxEnded({ clock: seen, signal: stop.signal, parent: chain.pid });
});
