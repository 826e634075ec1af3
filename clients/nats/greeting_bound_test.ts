import assert from "node:assert/strict";
import net from "node:net";
import { boundGreeting, NoGreeting } from "./greeting_bound.ts";

/** A socket whose peer sends these pieces, one after the other, then keeps quiet. */
async function connectTo(pieces: readonly Uint8Array[]) {
  const peers: net.Socket[] = [];
  const server = net.createServer((peer) => {
    peers.push(peer);
    peer.on("error", () => {});
    for (const piece of pieces) peer.write(piece);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const socket = net.createConnection(address.port, "127.0.0.1");
  boundGreeting(socket);
  return {
    socket,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      for (const peer of peers) peer.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Bytes that have come when there are `length` of them. */
function received(socket: net.Socket, length: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let sum = 0;
    socket.on("error", reject);
    socket.on("data", (piece) => {
      sum += piece.length;
      if (sum >= length) resolve(sum);
    });
  });
}

const KIB = 1024;
const text = (value: string) => new TextEncoder().encode(value);

Deno.test("boundGreeting() ends a socket whose first line does not end", async () => {
  await using world = await connectTo([new Uint8Array(300 * KIB)]);
  await assert.rejects(received(world.socket, 300 * KIB), NoGreeting);
  assert.ok(world.socket.destroyed);
});

Deno.test("boundGreeting() lets everything through after the first line", async () => {
  await using world = await connectTo([text("INFO {}\r\n"), new Uint8Array(600 * KIB)]);
  assert.equal(await received(world.socket, 600 * KIB + 9), 600 * KIB + 9);
});

Deno.test("boundGreeting() finds the end of a line whose two bytes come apart", () => {
  const socket = new net.Socket();
  boundGreeting(socket);
  socket.on("error", assert.fail);
  socket.emit("data", text("INFO {}\n\r"));
  assert.ok(Object.hasOwn(socket, "emit"));
  socket.emit("data", text("\n"));
  assert.ok(!Object.hasOwn(socket, "emit"), "nothing is looked at any more");
  socket.destroy();
});
