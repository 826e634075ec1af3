import assert from "node:assert/strict";
import net from "node:net";
import { keepErrorListeners } from "./socket_errors.ts";

Deno.test("keepErrorListeners() leaves a socket deaf to its errors when its listeners are taken off", async () => {
  keepErrorListeners();
  keepErrorListeners();
  const server = net.createServer((peer) => peer.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const socket = net.createConnection(address.port, "127.0.0.1", () => {});
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.on("error", () => assert.fail("this listener was taken off"));
  socket.removeAllListeners();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.destroy(new Error("reset"));
  await closed;
  assert.equal(socket.listenerCount("error"), 1);
  await new Promise((resolve) => server.close(resolve));
});
