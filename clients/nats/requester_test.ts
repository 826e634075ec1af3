import assert from "node:assert/strict";
import net from "node:net";
import { systemClock } from "../../lib/clock.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { eventually } from "../../tests/support/eventually.ts";
import { createBucket } from "./bucket.ts";
import { connectNats } from "./connection.ts";

/** As much of a server as one client needs; it answers each request with what it was sent. */
async function openServer() {
  const sockets = new Set<net.Socket>();
  const server = net.createServer();
  const state = { refuses: false, subscribed: [] as string[] };
  server.on("connection", (socket) => {
    const sids = new Map<string, string>();
    const send = (line: string) => socket.write(`${line}\r\n`);
    sockets.add(socket.on("error", () => {}));
    send(`INFO ${JSON.stringify({ server_id: "x", version: "2.10.0", proto: 1, headers: true })}`);
    socket.on("data", (part) => {
      for (const line of String(part).split("\r\n")) {
        const [verb, subject = "", second = "", third] = line.split(" ");
        if (verb === "PING") send("PONG");
        if (verb === "SUB" && state.refuses) {
          send(`-ERR 'Permissions Violation for Subscription to "${subject}"'`);
        } else if (verb === "SUB") {
          state.subscribed.push(subject);
          sids.set(subject.replace(/\*$/, ""), third ?? second);
        }
        const sid = sids.get(second.replace(/[^.]*$/, ""));
        if (verb === "PUB" && sid !== undefined) send(`MSG ${second} ${sid} 2\r\n{}`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    state,
    url: `nats://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

Deno.test("request() hears answers again once the server allows that, and hint() what is written", async () => {
  await using server = await openServer();
  const clock = createFakeClock();
  const stop = new AbortController();
  using limit = systemClock.timeout(10_000);
  const call = { signal: AbortSignal.any([stop.signal, limit.signal]) };
  server.state.refuses = true;
  await using connection = connectNats({
    servers: [server.url],
    user: null,
    password: null,
    credsFile: null,
    caFile: null,
  }, { logger: silentLogger, clock });
  await connection.ready(call);
  const ask = () => connection.wire.request("ask", new Uint8Array(1), call);
  createBucket(connection, { clock }).hint("key", () => {}, stop.signal);
  await assert.rejects(ask(), /does not let us hear its answers; allow subscriptions of _INBOX/);
  server.state.refuses = false;
  assert.equal((await ask()).string(), "{}");
  await eventually(async () => {
    await clock.advance(30_000);
    return server.state.subscribed.includes("$KV.CI_RUNNER_STATE.key");
  }, { what: "the subscription of the hint" });
  stop.abort();
});
