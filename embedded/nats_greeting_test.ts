import assert from "node:assert/strict";
import { systemClock as clock } from "../lib/clock.ts";
import { eventually } from "../tests/support/eventually.ts";
import { natsAnswers } from "./nats_greeting.ts";

/** Says `words` to whoever connects, and keeps the connection. */
function listen(words: string) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open: Deno.Conn[] = [];
  const accepted = Promise.withResolvers<void>();
  const running = (async () => {
    for await (const connection of listener) {
      open.push(connection);
      await connection.write(new TextEncoder().encode(words)).catch(() => {});
      accepted.resolve();
    }
  })();
  return {
    port: listener.addr.port,
    accepted: accepted.promise,
    async [Symbol.asyncDispose]() {
      listener.close();
      await running;
      for (const connection of open) connection.close();
    },
  };
}

Deno.test("natsAnswers() resolves at the greeting of a NATS server", async () => {
  await using server = listen('INFO {"server_id":"x"}');
  await natsAnswers(server.port, { clock, signal: new AbortController().signal });
});

Deno.test("natsAnswers() ends with the signal while a stranger accepts and says nothing", async () => {
  await using stranger = listen("");
  const stop = new AbortController();
  const waiting = natsAnswers(stranger.port, { clock, signal: stop.signal });
  await stranger.accepted;
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
});

Deno.test("natsAnswers() ends with a signal that aborts while it connects", async () => {
  await using stranger = listen("");
  const stop = new AbortController();
  const waiting = natsAnswers(stranger.port, { clock, signal: stop.signal });
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
});

Deno.test("natsAnswers() ends with the signal while a stranger's queue of connections is full", async () => {
  // It accepts none; beyond its queue the kernel answers no attempt to connect.
  using stranger = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
  const { port } = stranger.addr;
  const enough = new AbortController();
  const held: Deno.Conn[] = [];
  const connecting = [1, 2, 3, 4].map(async () => {
    try {
      held.push(await Deno.connect({ hostname: "127.0.0.1", port, signal: enough.signal }));
    } catch {
      // Given up below.
    }
  });
  // The kernel holds one more than it was told.
  await eventually(() => held.length === 2, { what: "the queue to be full" });
  const stop = new AbortController();
  const answer = natsAnswers(port, { clock, signal: stop.signal });
  const ended = assert.rejects(answer, /stopped/);
  await new Promise((resolve) => setTimeout(resolve, 0));
  stop.abort(new Error("stopped"));
  await ended;
  enough.abort();
  await Promise.all(connecting);
  for (const connection of held) connection.close();
});

Deno.test("natsAnswers() asks again while others greet, or nobody is there", async () => {
  await using stranger = listen("SSH-2.0-x");
  const stop = new AbortController();
  const waiting = natsAnswers(stranger.port, { clock, signal: stop.signal });
  await stranger.accepted;
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
});
