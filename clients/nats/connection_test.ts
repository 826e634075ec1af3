import assert from "node:assert/strict";
import net from "node:net";
import { systemClock } from "../../lib/clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { connectNats } from "./connection.ts";

Deno.test("connectNats() is closed at once while a server has accepted and says nothing", async () => {
  const accepted = Promise.withResolvers<net.Socket>();
  const server = net.createServer((socket) => accepted.resolve(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const connection = connectNats({
    servers: [`nats://127.0.0.1:${address.port}`],
    user: null,
    password: null,
    credsFile: null,
    caFile: null,
  }, { logger: silentLogger, clock: systemClock });
  const socket = await accepted.promise;
  const before = systemClock.monotonic();
  await connection[Symbol.asyncDispose]();
  assert.ok(systemClock.monotonic() - before < 2_000);
  assert.equal(connection.status().kind, "closed");
  // So that nothing of the try is left.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy();
  await closed;
  await new Promise((resolve) => server.close(resolve));
});
