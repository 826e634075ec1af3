import assert from "node:assert/strict";
import { createRequire } from "node:module";
import net from "node:net";
import { abortable } from "../../lib/abortable.ts";
import { systemClock } from "../../lib/clock.ts";
import { boundSilence, guardSockets } from "./library_sockets.ts";

/** As the library has them. */
const library: typeof net = createRequire(import.meta.url)("net");

async function portOf(server: net.Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}

Deno.test("guardSockets() leaves a socket deaf to its errors when its listeners are taken off", async () => {
  guardSockets();
  guardSockets();
  const server = net.createServer((peer) => peer.end());
  const socket = library.createConnection(await portOf(server), "127.0.0.1", () => {});
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.on("error", () => assert.fail("this listener was taken off"));
  socket.removeAllListeners();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy(new Error("reset"));
  await closed;
  assert.equal(socket.listenerCount("error"), 1);
  await new Promise((resolve) => server.close(resolve));
});

Deno.test("guardSockets() lets an empty write be done although the server takes nothing any more", async () => {
  guardSockets();
  const peers = new Set<net.Socket>();
  const server = net.createServer((peer) => void peers.add(peer.pause()));
  const socket = library.createConnection(await portOf(server), "127.0.0.1", () => {});
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(new Uint8Array(32 * 2 ** 20));
  using limit = systemClock.timeout(5_000);
  const done = new Promise<void>((resolve) => socket.write(new Uint8Array(), () => resolve()));
  await abortable(done, limit.signal);
  assert.ok(socket.writableLength > 0);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy();
  await closed;
  for (const peer of peers) peer.destroy();
  await new Promise((resolve) => server.close(resolve));
});

Deno.test("boundSilence() closes a socket on which nothing has come, and no other one", async () => {
  let greets = true;
  const server = net.createServer((peer) => void (greets && peer.write("INFO")));
  const port = await portOf(server);
  const open = async () => {
    const socket = net.createConnection(port, "127.0.0.1", () => {});
    boundSilence(socket, 200);
    await new Promise((resolve) => socket.once("connect", resolve));
    return socket;
  };
  const greeted = await open();
  await new Promise((resolve) => greeted.once("data", resolve));
  greets = false;
  const ignored = await open();
  ignored.removeAllListeners();
  using limit = systemClock.timeout(5_000);
  await abortable(new Promise((resolve) => ignored.once("close", resolve)), limit.signal);
  assert.equal(greeted.destroyed, false);
  const closed = new Promise((resolve) => greeted.once("close", resolve));
  greeted.destroy();
  await closed;
  await new Promise((resolve) => server.close(resolve));
});
