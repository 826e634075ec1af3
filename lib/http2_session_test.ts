import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { deferDestroy } from "./http2_session.ts";

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
