import assert from "node:assert/strict";
import { systemClock } from "../../lib/clock.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { fc } from "../../tests/support/property.ts";
import { claimFolder } from "./folder.ts";
import { bootId, self } from "./proc.ts";
import { exportScript, startWrapper, type Wrapper } from "./wrapper.ts";

async function setup() {
  const root = await Deno.makeTempDir({ prefix: "gdr-wrapper-" });
  const creator = {
    backend: "pod",
    instance: "i",
    process: await self(),
    bootId: await bootId(),
  } as const;
  const folder = await claimFolder(root, { name: "ci-1", creator, id: "1" });
  assert.ok(folder !== undefined);
  return {
    folder,
    start: (script: string) =>
      startWrapper(folder, { command: ["sh", "-c", script], userId: null }),
    read: (file: string) => Deno.readTextFile(`${folder}/${file}`),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

/** Waiting for a wrapper does not keep a process alive: its controller may go at any time. */
async function ended(wrapper: Wrapper): Promise<void> {
  const keep = setInterval(() => {}, 1000);
  await wrapper.ended;
  clearInterval(keep);
}

Deno.test("startWrapper() notes the exit code of its program", async () => {
  await using world = await setup();
  for (
    const [script, code] of [["exit 7", "7"], ["kill -KILL $$", "137"], ["true", "0"]] as const
  ) {
    const wrapper = await world.start(script);
    await wrapper.launch({});
    await ended(wrapper);
    assert.equal((await world.read("exit")).trim(), code);
  }
});

Deno.test("startWrapper() starts nothing when the environment never comes", async () => {
  await using world = await setup();
  const wrapper = await world.start(`touch started`);
  await wrapper.abandon(systemClock);
  assert.equal((await world.read("exit")).trim(), "125");
  assert.match(await world.read("output"), /not started: its controller stopped/);
  await assert.rejects(Deno.stat(`${world.folder}/home/started`), Deno.errors.NotFound);
});

Deno.test("abandon() ends a wrapper that somebody has frozen", async () => {
  await using world = await setup();
  const clock = createFakeClock();
  const wrapper = await world.start("touch started");
  Deno.kill(wrapper.process.pid, "SIGSTOP");
  const ending = wrapper.abandon(clock);
  await clock.advance(1_000);
  await ending;
  await assert.rejects(Deno.stat(`${world.folder}/home/started`), Deno.errors.NotFound);
});

Deno.test("startWrapper() keeps the exit code of a program that ends in its own time after SIGTERM", async () => {
  await using world = await setup();
  const wrapper = await world.start(
    `trap 'sleep 0.2; exit 18' TERM; touch up; while :; do sleep 0.05; done`,
  );
  await wrapper.launch({});
  while (await Deno.stat(`${world.folder}/home/up`).catch(() => undefined) === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  Deno.kill(-wrapper.process.pid, "SIGTERM");
  await ended(wrapper);
  assert.equal((await world.read("exit")).trim(), "18");
});

Deno.test("startWrapper() runs its program in home, with the environment and with stdin closed", async () => {
  await using world = await setup();
  const wrapper = await world.start(`pwd; echo "[$ONE] [$GDR_LAUNCH]"; cat; echo end`);
  await wrapper.launch({ ONE: "it's $HOME\n`x`" });
  await ended(wrapper);
  assert.equal(
    await world.read("output"),
    `${await Deno.realPath(`${world.folder}/home`)}\n[it's $HOME\n\`x\`] []\nend\n`,
  );
});

Deno.test("exportScript() carries any value through a shell unchanged", async () => {
  const values = fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 20 });
  const plain = (value: string) => value.replaceAll("\0", "").toWellFormed();
  await fc.assert(
    fc.asyncProperty(values, async (list) => {
      const env = Object.fromEntries(list.map((value, index) => [`V${index}`, plain(value)]));
      const shell = new Deno.Command("/bin/sh", {
        args: ["-c", 'eval "$(cat)"; unset GDR_LAUNCH; exec env -0'],
        clearEnv: true,
        env: { PATH: "/usr/bin:/bin" },
        stdin: "piped",
        stdout: "piped",
      }).spawn();
      const writer = shell.stdin.getWriter();
      await writer.write(new TextEncoder().encode(exportScript(env)));
      await writer.close();
      const seen = new TextDecoder("utf-8", { ignoreBOM: true })
        .decode((await shell.output()).stdout).split("\0");
      for (const [name, value] of Object.entries(env)) assert.ok(seen.includes(`${name}=${value}`));
    }),
    { numRuns: 15 },
  );
});

Deno.test("exportScript() refuses what is no variable", () => {
  for (const name of ["", "A-B", "1A", "A=B", "A;rm", "A\nB"]) {
    assert.throws(() => exportScript({ [name]: "x" }), TypeError, name);
  }
  assert.throws(() => exportScript({ A: "x\0y" }), TypeError);
});
