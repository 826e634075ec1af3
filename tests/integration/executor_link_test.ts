import assert from "node:assert/strict";
import { createFacadeApi } from "../../executor/facade_api.ts";
import { createFacadeLink } from "../../executor/facade_link.ts";
import { abortable } from "../../lib/abortable.ts";
import { systemClock } from "../../lib/clock.ts";
import { createFakeClock } from "../../lib/fake_clock.ts";
import { Secret } from "../../lib/secret.ts";
import { GATE, setupFacade, TRUST_DOMAIN } from "../support/facade_setup.ts";
import { startTcpRelay } from "../support/tcp_relay.ts";

/** In front of a facade that vanishes without a word: its connections stay open, what is sent is lost. */
function startVanishing(port: number) {
  let generation = 0;
  let taken = 0;
  const over = Promise.withResolvers<void>();
  const relay = startTcpRelay(async (client, connect) => {
    const mine = generation;
    taken++;
    const server = await connect({ hostname: "127.0.0.1", port });
    const pass = async (from: Deno.TcpConn, to: Deno.TcpConn) => {
      const buffer = new Uint8Array(64 * 1024);
      for (let size; (size = await from.read(buffer)) !== null;) {
        if (mine !== generation) continue;
        for (let sent = 0; sent < size;) sent += await to.write(buffer.subarray(sent, size));
      }
    };
    await Promise.race([pass(client, server), pass(server, client)]);
    // Nobody hears of the end of one that has vanished either.
    if (mine !== generation) await over.promise;
  });
  return {
    port: relay.port,
    taken: () => taken,
    /** Another one stands in its place from now on. */
    vanish: () => void generation++,
    async [Symbol.asyncDispose]() {
      over.resolve();
      await relay[Symbol.asyncDispose]();
    },
  };
}

Deno.test("a facade that vanishes without a word costs one call its time, not one for each connection", async () => {
  await using given = await setupFacade();
  const { info, svid } = await given.executor();
  await using relay = startVanishing(given.facade.port);
  using link = createFacadeLink({ current: () => svid }, {
    url: `https://127.0.0.1:${relay.port}`,
    spiffeId: `spiffe://${TRUST_DOMAIN}/controller`,
    assignment: info.id,
    capability: new Secret(given.capabilities.issue(info.id)),
    gate: GATE,
  });
  const clock = createFakeClock();
  const api = createFacadeApi(link, clock);
  using limit = systemClock.timeout(10_000);
  const beat = async () => {
    const sent = api.heartbeat({ holdsTask: false, logOffset: undefined }, limit);
    return (await abortable(sent, limit.signal)).kind;
  };
  assert.deepEqual(await Promise.all([beat(), beat(), beat()]), [
    "accepted",
    "accepted",
    "accepted",
  ]);
  assert.equal(relay.taken(), 3);
  relay.vanish();
  const lost = beat();
  await clock.advance(5_000);
  assert.equal(await lost, "later");
  assert.equal(await beat(), "accepted");
});
