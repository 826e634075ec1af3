import assert from "node:assert/strict";
import { systemClock } from "../lib/clock.ts";
import { silentLogger } from "../lib/logger.ts";
import { eventually } from "../tests/support/eventually.ts";
import { findNatsServer } from "./nats_binary.ts";
import { startNatsServer } from "./nats_server.ts";
import { choosePorts } from "./ports.ts";
import { openStateDirectory } from "./state_directory.ts";
import { ChildError } from "./child_process.ts";
import { createSupervisor } from "./supervisor.ts";

const { signal } = new AbortController();

async function setup() {
  const root = await Deno.makeTempDir({ prefix: "gdr-nats-" });
  const env = Deno.env.toObject();
  const cacheDir = `${env["XDG_CACHE_HOME"] ?? `${env["HOME"] ?? root}/.cache`}/gdr-tests`;
  const { path } = await findNatsServer({ cacheDir, env, logger: silentLogger, signal });
  const run = await openStateDirectory(`${root}/run`);
  const supervisor = createSupervisor({ directory: run, logger: silentLogger, clock: systemClock });
  const { nats: port } = await choosePorts(`${root}/ports.json`, ["nats"]);
  return {
    root,
    port,
    start: () =>
      startNatsServer({ binary: path, directory: `${root}/nats`, port, supervisor, signal }),
    async [Symbol.asyncDispose]() {
      await supervisor[Symbol.asyncDispose]();
      await Deno.remove(root, { recursive: true });
    },
  };
}

/** Says hello as a client and resolves to the server's answer. */
async function hello(port: number, user: string, password: string): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const buffer = new Uint8Array(4096);
  await connection.read(buffer);
  const options = { user, pass: password, verbose: false, pedantic: false };
  await connection.write(
    new TextEncoder().encode(`CONNECT ${JSON.stringify(options)}\r\nPING\r\n`),
  );
  const read = await connection.read(buffer) ?? 0;
  return text(buffer.subarray(0, read)).split("\r\n")[0] ?? "";
}

Deno.test("startNatsServer() runs a server on loopback that takes only our password", async () => {
  await using world = await setup();
  const nats = await world.start();
  assert.equal(nats.url, `nats://127.0.0.1:${world.port}`);
  assert.equal(await hello(world.port, nats.user, nats.password.reveal()), "PONG");
  assert.match(await hello(world.port, nats.user, "wrong"), /Authorization Violation/);
  const config = `${world.root}/nats/nats.conf`;
  assert.equal(((await Deno.stat(config)).mode ?? 0) & 0o777, 0o600);
  assert.match(await Deno.readTextFile(config), /sync_interval: always/);
});

Deno.test("startNatsServer() comes back with the same port and password after a crash", async () => {
  await using world = await setup();
  const { child, user, password } = await world.start();
  const first = child.pid;
  assert.ok(first !== null);
  Deno.kill(first, "SIGKILL");
  await eventually(() => child.restarts === 1 && child.pid !== null, { what: "the restart" });
  assert.equal(await hello(world.port, user, password.reveal()), "PONG");
});

Deno.test("startNatsServer() rejects with the server's own words when its port is taken", async () => {
  await using world = await setup();
  using _other = Deno.listen({ hostname: "127.0.0.1", port: world.port });
  await assert.rejects(world.start(), (error) => {
    assert.ok(error instanceof ChildError);
    assert.match(error.message, /^Start nats-server: .*address already in use/);
    return true;
  });
});
