import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { boundHandshake, deferDestroy } from "./http2_session.ts";

Deno.test("deferDestroy() destroys a session in a later turn, not in the callback that asks for it", async () => {
  const server = http2.createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const accepted = once(server, "session");
  const session = http2.connect(`http://127.0.0.1:${address.port}`);
  deferDestroy(session);
  await Promise.all([once(session, "connect"), accepted]);

  const closed = once(session, "close");
  session.close();
  assert.equal(session.closed, true);
  assert.equal(session.destroyed, false);
  await Promise.resolve();
  assert.equal(session.destroyed, false);
  await closed;
  assert.equal(session.destroyed, true);
  session.destroy();

  server.close();
  await once(server, "close");
});

Deno.test("boundHandshake() destroys a session whose server accepts and says nothing, and no other one", async () => {
  const silent = net.createServer();
  const talking = http2.createServer();
  const accepted = new Set<net.Socket>();
  for (const server of [silent, talking]) {
    server.on("connection", (socket: net.Socket) => accepted.add(socket));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  const connect = (server: net.Server | http2.Http2Server) => {
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    const session = http2.connect(`http://127.0.0.1:${address.port}`);
    boundHandshake(session, 200);
    return session;
  };
  const well = connect(talking);
  await once(well, "remoteSettings");
  const hung = connect(silent);
  const closed = new Promise((resolve) => hung.once("close", resolve));
  const [error] = await once(hung, "error");
  assert.match(String(error), /no settings within 0.2 s/);
  await closed;
  assert.equal(well.destroyed, false);
  well.close();
  await once(well, "close");
  for (const socket of accepted) socket.destroy();
  for (const server of [silent, talking]) {
    server.close();
    await once(server, "close");
  }
});
